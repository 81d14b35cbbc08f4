import { InvalidInputError, type RunHead } from "../engine/mod.ts";
import { DEFAULT_QUEUE, type Home } from "../runs/mod.ts";
import { EXIT } from "./exit.ts";
import { flag, list, text, whole } from "./options.ts";
import { command, print, tell } from "./display/output.ts";

/**
 * Where a detached run waits; `needs`: slots it holds while it runs, if they do not follow from
 * its blocks.
 */
export type Queued = { queue: string; priority: number; needs?: Record<string, number> };

/** For a verb that creates a run: it may leave it to `serve`. */
export const QUEUE_OPTIONS = {
  detach: flag("queue the run for 'serve' and print its id"),
  queue: text("<name>", "with --detach: the queue to wait in (default: default)"),
  priority: whole("<n>", "with --detach: higher starts first (default: 0)", {
    least: -Number.MAX_SAFE_INTEGER,
  }),
  needs: list("<name=n>", "with --detach: host slots the run occupies, such as gpu=4"),
};

type QueueFlags = { detach?: boolean; queue?: string; priority?: number; needs?: string[] };

/** Where a detached run waits; undefined for one that starts here. */
export function queuedOf({ detach, queue, priority, needs = [] }: QueueFlags): Queued | undefined {
  const counts = needs.length > 0 ? countsOf(needs, "--needs") : undefined;
  if (detach) return { queue: queue ?? DEFAULT_QUEUE, priority: priority ?? 0, needs: counts };
  if (queue === undefined && priority === undefined && counts === undefined) return undefined;
  throw new InvalidInputError(
    "Cannot queue a run that starts here: --queue, --priority and --needs require --detach",
  );
}

/** Says which queue a run waits in, and prints its id. Returns the exit code. */
export function leaveQueued(home: Home, { id, queue }: RunHead): number {
  tell(queuedText(home, { id, queue: queue! }));
  print(id);
  return EXIT.done;
}

/** Describes a queued run and how to serve it. */
export function queuedText(home: Home, run: { id: string; queue: string }): string {
  const serve = `serve${run.queue === DEFAULT_QUEUE ? "" : ` --queue ${run.queue}`}`;
  return `run ${run.id} is in queue '${run.queue}'. Start an engine with: ${command(home, serve)}`;
}

/** Reads `NAME=N` texts. `without`: what a bare NAME means, if it may stand alone. */
export function countsOf(
  texts: string[],
  option: string,
  without?: number,
): Record<string, number> {
  return Object.fromEntries(texts.map((text) => {
    const [, name, count] = /^([A-Za-z0-9_.-]+)(?:=(\d+))?$/.exec(text) ?? [];
    if (name !== undefined && count !== undefined) return [name, Number(count)];
    if (name !== undefined && without !== undefined) return [name, without];
    const form = without === undefined ? "NAME=N" : "NAME or NAME=N";
    throw new InvalidInputError(
      `Cannot use '${text}' for ${option}: give ${form}, N a whole number`,
      { option, text },
    );
  }));
}
