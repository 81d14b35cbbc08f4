import {
  AGEING_MS,
  computedStatus,
  type EngineError,
  InvalidInputError,
  isQueued,
  queueOrder,
  recordedError,
  type RunHead,
} from "../../engine/mod.ts";
import { didYouMean } from "../../configs/mod.ts";
import { graphName, type Home } from "../../runs/mod.ts";
import { json, text } from "../options.ts";
import { age, fixed, print, printJson, table, tell } from "../display/output.ts";
import { defineVerb } from "../verb.ts";

const STATUSES = ["queued", "running", "interrupted", "done", "failed", "cancelled"];

/** `runs [TEXT]`: every run, newest first; with a text, only those whose id or name contains it. */
export const runsVerb = defineVerb({
  name: "runs",
  about: "list all runs, or those whose id or name contains a text",
  arguments: { "[text]": "part of a run's id or name" },
  options: { json, status: text("<status>", "only runs with this status") },
  action: ({ args, flags, globals }) =>
    globals.withHome((home) => listRuns(home, { ...flags, text: args.text })),
});

async function listRuns(
  home: Home,
  options: { json?: boolean; status?: string; text?: string },
): Promise<void> {
  const { status: wanted, text = "" } = options;
  if (wanted !== undefined && !STATUSES.includes(wanted)) {
    const near = didYouMean(wanted, STATUSES);
    throw new InvalidInputError(
      `Cannot list runs of status '${wanted}'${near}: give one of ${STATUSES.join(", ")}`,
    );
  }
  const onDamaged = ({ message }: EngineError) => tell(message);
  const heads = (await home.store.heads({ limit: 1000, onDamaged })).toSorted((a, b) =>
    b.created_ms - a.created_ms
  );
  const positions = queuePositions(heads);
  const rewards = await Promise.all(heads.map((head) => home.lastMetric(head, "reward/mean")));
  const runs = heads.map((head, i) => {
    const status = computedStatus(head);
    return {
      id: head.id,
      name: head.name,
      status,
      graph: graphName(head),
      parent: head.parent && { run: head.parent.run, round: head.parent.round },
      queue: head.queue,
      priority: head.priority,
      position: positions.get(head.id) ?? null,
      reward: rewards[i]!,
      resumable: status === "interrupted" || status === "failed",
      created_at: new Date(head.created_ms).toISOString(),
      error: (recordedError(head) as { message: string } | null)?.message ?? null,
    };
  }).filter(({ id, name, status }) =>
    (!wanted || status === wanted) && (id.includes(text) || name.includes(text))
  );
  if (options.json) return printJson(runs);
  if (runs.length === 0 && heads.length > 0) return print(`none of ${heads.length} runs matches`);
  if (runs.length === 0) {
    return print(
      "no runs yet: start one with 'run CONFIG', or omit the command to run the quickstart",
    );
  }
  const rows = runs.map((run) => [
    run.id,
    run.name,
    run.position === null ? run.status : `queued ${run.queue} ${run.position}`,
    run.parent === null ? run.graph : `${run.graph} from ${run.parent.run}/${run.parent.round}`,
    run.reward === null ? "-" : fixed(run.reward, 3),
    age(Date.now() - Date.parse(run.created_at)),
    (run.error ?? "").split("\n")[0]!.slice(0, 60),
  ]);
  print(table(["run", "name", "status", "graph", "reward", "age", "last error"], rows));
}

/** The position of each waiting run in its queue, from 1. */
function queuePositions(heads: RunHead[]): Map<string, number> {
  const waiting = queueOrder(heads.filter(isQueued), AGEING_MS, Date.now());
  const queues = Map.groupBy(waiting, ({ queue }) => queue);
  return new Map(
    [...queues.values()].flatMap((runs) => runs.map(({ id }, i): [string, number] => [id, i + 1])),
  );
}
