import { fakeLauncher, type FakeScript } from "../../testing/mod.ts";
import {
  type GroupSpec,
  Workers,
  type WorkersEvent,
  type WorkersOptions,
} from "../../workers/mod.ts";
import type { PythonBuild } from "../../workers/environments/python_interpreter.ts";

/** Keeps events, and waits for one without sleeping. */
export class Events<E> {
  readonly all: E[] = [];
  #watchers: { wanted: (event: E) => boolean; resolve: (event: E) => void }[] = [];

  readonly push = (event: E): void => {
    this.all.push(event);
    for (const watcher of this.#watchers) if (watcher.wanted(event)) watcher.resolve(event);
    this.#watchers = this.#watchers.filter(({ wanted }) => !wanted(event));
  };

  /** The first event that is wanted, past or to come. */
  until(wanted: (event: E) => boolean): Promise<E> {
    const found = this.all.find(wanted);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => this.#watchers.push({ wanted, resolve }));
  }

  /** The next one, whatever came before. */
  next(wanted: (event: E) => boolean): Promise<E> {
    return new Promise((resolve) => this.#watchers.push({ wanted, resolve }));
  }
}

export async function withHome(body: (home: string) => Promise<void>): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-workers-" });
  try {
    await body(home);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** A Python that environments could be made with. */
export const PYTHON: PythonBuild = {
  tag: "cpython3.11",
  version: "3.11.7",
  platform: "linux-x86_64",
  base: "/usr/bin/python3.11",
};

type Bench = {
  workers: Workers;
  agents: ReturnType<typeof fakeLauncher>["agents"];
  events: Events<WorkersEvent>;
  home: string;
};

/** Workers over fake agents, stopped and cleaned up afterwards. */
export function withFakes(
  script: FakeScript,
  body: (bench: Bench) => Promise<void>,
  options: Partial<WorkersOptions> = {},
): Promise<void> {
  return withHome(async (home) => {
    const { launcher, agents } = fakeLauncher(script);
    const events = new Events<WorkersEvent>();
    const base = { run: "run", epoch: 1, attempt: 1, home, launcher, onEvent: events.push };
    const workers = await Workers.start({ ...base, ...options });
    try {
      await body({ workers, agents, events, home });
    } finally {
      await workers.stop();
    }
  });
}

export function groupSpec(spec: Partial<GroupSpec> = {}): GroupSpec {
  const base = {
    group: "trainer",
    role: "trainer",
    ranks: 1,
    python: "python3",
    module: "echo_worker",
    spec: {},
  };
  return { ...base, ...spec };
}

/** A promise and its resolver under a name that reads well in a script. */
export function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
