import { EngineError, type Graph, type RunHead } from "../engine/mod.ts";
import type { RowTables } from "../flows/mod.ts";
import { abandonOwnRuns, executeRun, type Home, type SessionOptions } from "../runs/mod.ts";
import type { BeforeRecording } from "./before_recording.ts";
import { EXIT, isBadInput } from "./exit.ts";
import { LiveView } from "./display/live.ts";
import { command, errorScreen } from "./display/output.ts";
import { reportEnd } from "./run_end.ts";
import { configuredGraceS, preemptGraceS, StopRequests } from "./stop_requests.ts";
import { visible } from "./display/visible.ts";

type Following = {
  head: RunHead;
  graph: Graph;
  config: unknown;
  accept?: boolean;
  replan?: SessionOptions["replan"];
  settings?: SessionOptions["settings"];
  rows?: RowTables;
};

/**
 * Executes a run that was just recorded, or says how to start it if a stop was requested
 * meanwhile.
 */
export async function followRun(
  home: Home,
  following: Following,
  early: BeforeRecording,
): Promise<number> {
  if (early.stopRequested) {
    const { id } = following.head;
    errorScreen().write(
      `stopped before run ${id} started. Start it with: ${command(home, `resume ${id}`)}\n`,
    );
    return EXIT.interrupted;
  }
  // It listens before `early` stops listening: no signal is lost.
  const followed = follow(home, following);
  early.release();
  return await followed;
}

/** Executes a run and shows its progress. `StopRequests` describes what stops it. */
async function follow(
  home: Home,
  { head, graph, config, accept, replan, settings, rows }: Following,
): Promise<number> {
  const screen = errorScreen();
  const note = (text: string) => screen.write(`${visible(text)}\n`);
  const resume = `Resume with: ${command(home, `resume ${head.id}`)}`;
  const stopping = `stopping run ${head.id} at the next durable point`;
  const graceS = preemptGraceS(configuredGraceS(config));
  const texts = {
    draining: `${stopping} and saving its policy; Ctrl-C again stops immediately`,
    preempted: `SIGTERM: ${stopping} and saving its policy; hard stop in ${graceS} s`,
    at_once: `stopped immediately. ${resume}`,
    grace_over: `stopped immediately, ${graceS} s after SIGTERM. ${resume}`,
  };
  const requests = new StopRequests({
    graceS: () => graceS,
    note: (what) => live.note(texts[what]),
    exit: () => abandonOwnRuns(home).finally(() => Deno.exit(EXIT.interrupted)),
  });
  const live = new LiveView({
    screen: requests.quietAtTheEnd(screen),
    now: () => performance.now(),
    stop: requests.drain,
  });
  const release = requests.listen();
  live.note(`run ${head.id}`);
  try {
    const outcome = await executeRun(home, { head, graph }, {
      drain: requests.drain,
      preempted: requests.preempted,
      accept,
      replan,
      settings,
      rows,
      onEvent: (event) => live.on(event),
      onWorkers: (event) => live.onWorkers(event),
      onSetup: (progress) => live.setup(progress),
    }).finally(() => requests.exiting);
    live.end();
    return await reportEnd(head, { outcome, home, note });
  } catch (error) {
    if (!(error instanceof EngineError) || isBadInput(error)) throw error;
    live.end();
    return await reportEnd(head, {
      outcome: { status: "failed", error: error.toJSON() },
      home,
      note,
    });
  } finally {
    live.end();
    release();
  }
}
