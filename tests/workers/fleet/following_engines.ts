import { type FakeIO, fakeLauncher, type FakeScript } from "../../../testing/mod.ts";
import { Workers, type WorkersEvent, type WorkersOptions } from "../../../workers/mod.ts";
import { Events, gate, withHome } from "../fixtures.ts";

export type Engine = { workers: Workers; events: Events<WorkersEvent> };
type Bench = {
  /** The n-th engine of the run. It has the run until the next one is started. */
  engine: (options?: Partial<WorkersOptions>) => Promise<Engine>;
  agents: ReturnType<typeof fakeLauncher>["agents"];
  home: string;
};

/**
 * Engines that follow each other over the same fake agents. An engine that was followed is as a
 * frozen one that wakes up.
 */
export function withEngines(
  script: FakeScript,
  body: (bench: Bench) => Promise<void>,
): Promise<void> {
  return withHome(async (home) => {
    const { launcher, agents } = fakeLauncher(script);
    const engines: Workers[] = [];
    let owner = 0;
    const engine = async (options: Partial<WorkersOptions> = {}) => {
      const epoch = ++owner;
      const events = new Events<WorkersEvent>();
      const owns = () => Promise.resolve(owner === epoch);
      const base = {
        run: "run",
        epoch,
        attempt: epoch,
        home,
        launcher,
        onEvent: events.push,
        owns,
      };
      const workers = await Workers.start({ ...base, ...options });
      engines.push(workers);
      return { workers, events };
    };
    try {
      await body({ engine, agents, home });
    } finally {
      for (const workers of engines.toReversed()) await workers.stop();
    }
  });
}

export const never = () => new Promise<void>(() => {});
/** As a stage that starts again: its second attempt, while the first has no recorded end. */
export const AGAIN = { key: "k", attempt: 2, since_attempt: 1 };
export const FIRST = { key: "k", attempt: 1, recorded: never };

/** An operation that counts its runs and ends when the test says so. */
export function counted() {
  const started = gate();
  const finish = gate();
  const runs = { count: 0 };
  const train = async (_: unknown, io: FakeIO) => {
    runs.count += 1;
    started.open();
    await finish.opened;
    io.blob(new Uint8Array([7]));
    return runs.count;
  };
  return {
    script: { operations: { trainer: { train, score: () => "scored" } } },
    started,
    finish,
    runs,
  };
}
