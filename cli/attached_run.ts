import {
  type Clock,
  computedStatus,
  type ErrorJson,
  LostRecordError,
  type Outcome,
  type OwnershipOptions,
  recordedError,
  recordedOutput,
  type RunHead,
} from "../engine/mod.ts";
import { type Home, JournalEvents } from "../runs/mod.ts";
import { EXIT } from "./exit.ts";
import { LiveView } from "./display/live.ts";
import type { Screen } from "./display/output.ts";
import { queuedText } from "./queued.ts";
import { reportEnd } from "./run_end.ts";

const POLL_MS = 500;

type Attaching = OwnershipOptions & {
  screen: Screen;
  clock: Clock;
  /** Aborted to stop watching. The run does not notice. */
  detach: AbortSignal;
};

/**
 * Shows a run that any engine of the store executes, from its journal, until it ends or no engine
 * executes it. Returns the exit code that `run` would.
 */
export async function attach(
  home: Home,
  { id }: Pick<RunHead, "id">,
  { screen, clock, alive, detach }: Attaching,
): Promise<number> {
  const head = async () => (await home.store.head(id))!;
  const events = new JournalEvents(home, await head());
  const live = new LiveView({ screen, now: () => events.at_ms });
  const note = (text: string) => live.note(text);
  note(`run ${id}`);
  await live.catchUp(events.past());
  let told = "";
  for (;;) {
    const now = await head(); // Must precede the rows.
    for await (const event of events.next()) live.on(event);
    const status = computedStatus(now, { clock, alive });
    const waiting = waitingText(home, now, status);
    if (waiting === null && status !== "running") {
      live.end();
      if (status === "interrupted") note(whyIdle(now));
      return await reportEnd(now, { outcome: await outcomeOf(home, now, status), home, note });
    }
    if (waiting !== null && waiting !== told) note(waiting);
    told = waiting ?? "";
    if (!detach.aborted) await clock.sleep(POLL_MS, detach).catch(() => {});
    if (detach.aborted) break;
  }
  live.end();
  note("detached; the run continues");
  return EXIT.interrupted;
}

type Status = ReturnType<typeof computedStatus>;

/** What a run of a queue waits for; null: it is not waiting for an engine. */
function waitingText(home: Home, { id, queue, owner }: RunHead, status: Status): string | null {
  if (queue === null || status === "running") return null;
  if (status === "queued") return `no engine has taken it yet: ${queuedText(home, { id, queue })}`;
  if (status !== "interrupted" || owner === null) return null;
  return `${lostText(owner)}. Another engine of its queue takes it over: ${
    queuedText(home, { id, queue })
  }`;
}

/** Why no engine executes an unfinished run of no queue. */
function whyIdle({ id, owner, epoch }: RunHead): string {
  if (owner !== null) return lostText(owner);
  return epoch === 0 ? `no engine has started run ${id}` : "its engine was stopped";
}

function lostText({ pid, host }: NonNullable<RunHead["owner"]>): string {
  return `its engine (process ${pid} on ${host}) has crashed, or was cut off from the store`;
}

async function outcomeOf(home: Home, head: RunHead, status: Status): Promise<Outcome> {
  if (status === "done") return { status, output: await outputOf(head.id, home) };
  if (status === "failed") return { status, error: recordedError(head) as ErrorJson };
  return { status: status === "cancelled" ? "cancelled" : "interrupted" };
}

/** The last lines only say where prepared data is. Null: it is stored in another home. */
async function outputOf(run: string, home: Home): Promise<unknown> {
  try {
    return await recordedOutput(run, home);
  } catch (error) {
    if (error instanceof LostRecordError) return null;
    throw error;
  }
}
