import { deepStrictEqual } from "node:assert/strict";
import process from "node:process";
import {
  readWorkerStates,
  type WorkerState,
  writeWorkerStates,
} from "../../../workers/fleet/worker_states.ts";
import { withHome } from "../fixtures.ts";

const STATES: WorkerState[] = [
  { role: "trainer", group: "trainer", generation: 2, rank: 0, pid: 7, state: "ready" },
  { role: "sampler", group: "sampler/0", generation: 1, rank: null, pid: null, state: "starting" },
];

/** Changes fields of the file that was written for run `r`. */
async function change(home: string, fields: Record<string, unknown>): Promise<void> {
  const path = `${home}/runs/r/workers.json`;
  const file = JSON.parse(await Deno.readTextFile(path));
  await Deno.writeTextFile(path, JSON.stringify({ ...file, ...fields }));
}

Deno.test("readWorkerStates() reads what writeWorkerStates() wrote last", () =>
  withHome(async (home) => {
    await writeWorkerStates([], { home, run: "r" });
    await writeWorkerStates(STATES, { home, run: "r" });
    deepStrictEqual(readWorkerStates(home, "r"), STATES);
    deepStrictEqual(readWorkerStates(home, "other"), []);
  }));

Deno.test("writeWorkerStates() writes for the owner alone and leaves no other file", () =>
  withHome(async (home) => {
    await writeWorkerStates(STATES, { home, run: "r" });
    const names = [...Deno.readDirSync(`${home}/runs/r`)].map(({ name }) => name);
    deepStrictEqual(names, ["workers.json"]);
    deepStrictEqual((await Deno.stat(`${home}/runs/r/workers.json`)).mode! & 0o777, 0o600);
  }));

Deno.test("readWorkerStates() is empty if the engine's pid was reused", () =>
  withHome(async (home) => {
    await writeWorkerStates(STATES, { home, run: "r" });
    await change(home, { engine_pid: process.ppid, engine_start: "another time" });
    deepStrictEqual(readWorkerStates(home, "r"), []);
    await change(home, { engine_pid: 2 ** 30 }); // No such process.
    deepStrictEqual(readWorkerStates(home, "r"), []);
  }));

Deno.test("readWorkerStates() is empty for a torn or malformed file", () =>
  withHome(async (home) => {
    await writeWorkerStates(STATES, { home, run: "r" });
    await change(home, { workers: [{ role: "trainer" }] });
    deepStrictEqual(readWorkerStates(home, "r"), []);
    await Deno.writeTextFile(`${home}/runs/r/workers.json`, '{"engine_pid":');
    deepStrictEqual(readWorkerStates(home, "r"), []);
  }));
