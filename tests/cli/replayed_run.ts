/** A run that only its journal knows: a fake run's rows, appended when a test says so. */
import { type JournalRow, ManualClock, type Owner } from "../../engine/mod.ts";
import type { Home } from "../../runs/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";

const OWNER: Owner = { boot_id: "b", host: "far", pid: 7, process_start: "then" };
const LEASE_MS = 10_000;

/** The rows of a fake run. */
export async function recordedRows(
  overrides: Record<string, unknown> = {},
): Promise<JournalRow[]> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", overrides);
  await executeFake(home, "a");
  return await home.store.read("a");
}

/** A home whose store has the test's time. */
export async function timedHome(): Promise<{ home: Home; clock: ManualClock }> {
  const clock = new ManualClock();
  return { clock, home: await freshFakeHome(new MemoryStore({ clock })) };
}

/** How many rows there are up to the end of a round; without one, all. */
function upTo(rows: readonly JournalRow[], round?: number): number {
  const found = rows.findIndex(({ kind, key }) => kind === "round" && key === `round/${round}`);
  return found < 0 ? rows.length : found + 1;
}

/** The engine of a run of another machine, by hand: it takes the run and appends its rows. */
export class ReplayedRun {
  epoch = 0;
  #next = 0;
  readonly #home: Home;
  readonly #id: string;
  readonly #rows: readonly JournalRow[];

  constructor(home: Home, id: string, rows: readonly JournalRow[]) {
    this.#home = home;
    this.#id = id;
    this.#rows = rows;
  }

  async take(): Promise<void> {
    const claim = { lease_ms: LEASE_MS, force: true };
    this.epoch = (await this.#home.store.claim(this.#id, OWNER, claim)).head.epoch;
  }

  /** Records the run up to the end of a round; without one, to its end. */
  async run(round?: number): Promise<void> {
    const end = upTo(this.#rows, round);
    const rows = this.#rows.slice(this.#next, end)
      .map(({ kind, key, value, input_hash }) => ({ kind, key, value, input_hash }));
    this.#next = end;
    await this.#home.store.renew(this.#id, this.epoch, LEASE_MS);
    await this.#home.store.append(this.#id, this.epoch, rows);
  }

  async add(kind: JournalRow["kind"], key: string, value: unknown): Promise<void> {
    const row = { kind, key, value: typeof value === "string" ? value : JSON.stringify(value) };
    await this.#home.store.append(this.#id, this.epoch, [row]);
  }
}
