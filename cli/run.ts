import { changedAlgorithm, type LoadedConfig } from "../configs/mod.ts";
import { EngineError, type Graph, InvalidInputError, type RunHead } from "../engine/mod.ts";
import { checkAlgorithm, flowDefinition, type RowTables, SHIPPED } from "../flows/mod.ts";
import {
  type AnyDefinition,
  checkRewards,
  createRun,
  endOwnWorkers,
  executeRun,
  findRun,
  type Home,
  MetricsFile,
  questionsOf,
  removeLeftovers,
  rowTables,
  type SessionOptions,
  slotsOf,
} from "../runs/mod.ts";
import { forkOf } from "./after_failure.ts";
import { LiveView } from "./live.ts";
import { EXIT, isBadInput } from "./exit.ts";
import type { BeforeRecording } from "./before_recording.ts";
import { command, errorScreen, print } from "./output.ts";
import { resumeOverrides } from "./resume_overrides.ts";
import { reportEnd } from "./run_end.ts";
import { queuedText } from "./serve.ts";
import { configuredGraceS, preemptGraceS, StopRequests } from "./stop_requests.ts";

/**
 * Where a detached run waits; `needs`: slots it holds while it runs, if they do not follow from
 * its blocks.
 */
export type Queued = { queue: string; priority: number; needs?: Record<string, number> };

/**
 * `run CONFIG`: records the run, then executes it, or queues it for `serve`. Returns the exit
 * code.
 */
export async function runCommand(
  home: Home,
  loaded: LoadedConfig,
  options: { id?: string; verb?: string; queued?: Queued; early: BeforeRecording },
): Promise<number> {
  const { early, queued } = options;
  const { config } = loaded;
  if (options.verb === "eval" && config.flow !== "evaluate") {
    throw new InvalidInputError(
      `Cannot evaluate with ${loaded.file} because its flow is '${config.flow}': set flow: evaluate, or use 'run'`,
      { flow: config.flow },
    );
  }
  const definition = flowDefinition(config.flow);
  const rows = await rowTables(config); // A broken row is bad input: it is reported before anything is recorded.
  for (const question of questionsOf(config, rows)) errorScreen().write(`Is this intended? ${question}\n`);
  // So is unusable Python code. A queued run may start on a different machine, which checks it then.
  const looking = { home: home.dir, onSetup: ({ text }: { text: string }) => errorScreen().write(`${text}\n`) };
  if (!queued) await checkAlgorithm(config, looking);
  await checkRewards(config, { ...looking, rows, load: !queued });
  const head = await early.record(() =>
    createRun(home, definition, {
      config,
      id: options.id,
      name: config.name,
      entry: `${SHIPPED}${config.flow}`,
      needs: queued?.needs ?? slotsOf(config),
      ...(queued && { queue: queued.queue, priority: queued.priority }),
    })
  );
  if (queued) return leaveQueued(home, head);
  return await begin(home, { head, graph: (definition as AnyDefinition).build(config), config, rows }, early);
}

/**
 * Executes a run that was just recorded, or says how to start it if a stop was requested
 * meanwhile.
 */
export async function begin(home: Home, following: Following, early: BeforeRecording): Promise<number> {
  if (early.asked) {
    const { id } = following.head;
    errorScreen().write(`stopped before run ${id} started. Start it with: ${command(home, `resume ${id}`)}\n`);
    return EXIT.interrupted;
  }
  const followed = follow(home, following); // It listens before `early` stops listening: no signal is lost.
  early.release();
  return await followed;
}

/** Says which queue a run waits in, and prints its id. Returns the exit code. */
export function leaveQueued(home: Home, { id, queue }: RunHead): number {
  errorScreen().write(`${queuedText(home, { id, queue: queue! })}\n`);
  print(id);
  return EXIT.done;
}

/** `resume [RUN] [a.b=c ...]`. Returns the exit code. */
export async function resumeCommand(
  home: Home,
  id: string | undefined,
  options: { accept: boolean; overrides: readonly string[]; early: BeforeRecording },
): Promise<number> {
  const head = await findRun(home, id);
  if (head.status === "done") {
    await MetricsFile.remake(home, head); // They may be missing, and nothing else writes them for a run that is done.
    await removeLeftovers(home, head.id, (text) => errorScreen().write(`${text}\n`));
    errorScreen().write(`run ${head.id} is already done: nothing to resume\n`);
    return EXIT.done;
  }
  if (head.status === "cancelled") {
    throw new InvalidInputError(`Cannot resume run '${head.id}' because it was cancelled: start a new one`, {
      run: head.id,
    });
  }
  const { refused: _, ...resumed } = await resumeOverrides(home, head, options.overrides);
  const changed = await changedAlgorithm(resumed.config);
  if (changed) {
    const text = `${changed} has changed: the run keeps the algorithm it started with. ${await forkOf(
      home,
      head,
    )}`;
    errorScreen().write(`${text}\n`);
  }
  return await begin(home, { head, ...resumed, accept: options.accept }, options.early);
}

type Following = {
  head: RunHead;
  graph: Graph;
  config: unknown;
  accept?: boolean;
  replan?: SessionOptions["replan"];
  settings?: SessionOptions["settings"];
  rows?: RowTables;
};

/** Executes a run and shows its progress. `StopRequests` describes what stops it. */
async function follow(
  home: Home,
  { head, graph, config, accept, replan, settings, rows }: Following,
): Promise<number> {
  const screen = errorScreen();
  const live = new LiveView({ screen, now: () => performance.now() });
  const note = (text: string) => screen.write(`${text}\n`);
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
    exit: () => void endOwnWorkers(home).finally(() => Deno.exit(EXIT.interrupted)),
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
    });
    live.end();
    return await reportEnd(head, { outcome, home, note });
  } catch (error) {
    if (!(error instanceof EngineError) || isBadInput(error)) throw error;
    live.end();
    return await reportEnd(head, { outcome: { status: "failed", error: error.toJSON() }, home, note });
  } finally {
    live.end();
    release();
  }
}
