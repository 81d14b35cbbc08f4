import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { BeforeRecording } from "../../cli/before_recording.ts";
import { ONE_PRESS_MS } from "../../cli/stop_requests.ts";
import { ManualClock } from "../../engine/mod.ts";
import { endAll, freshHome, json, start } from "./fixtures.ts";

Deno.test.afterAll(endAll);

function bench() {
  const notes: unknown[] = [];
  const clock = new ManualClock();
  const before = new BeforeRecording({
    nothing: "nothing",
    note: (text) => notes.push(text),
    exit: (code) => notes.push(code),
    clock,
  });
  return { before, notes, clock };
}

Deno.test("a stop before anything is recorded says so and exits with 130", () => {
  const { before, notes } = bench();
  before.interrupted();
  deepStrictEqual([notes, before.stopRequested], [["nothing", 130], false]);
});

Deno.test("a stop while the run is being recorded waits until it is, and a second one does not", async () => {
  const { before, notes, clock } = bench();
  const recorded = Promise.withResolvers<string>();
  const recording = before.record(() => recorded.promise);
  before.interrupted();
  await clock.advance(ONE_PRESS_MS - 1);
  before.interrupted(); // The same press, forwarded by `deno task`.
  deepStrictEqual([notes, before.stopRequested], [[], true]);
  recorded.resolve("run");
  strictEqual(await recording, "run");
  await clock.advance(1);
  before.interrupted();
  strictEqual(notes.length, 2);
  match(String(notes[0]), /'runs' shows whether it was/);
});

Deno.test("during() listens while its work goes on, and no more once others do", async () => {
  const { before, notes } = bench();
  const signals: string[] = [];
  const real = { add: Deno.addSignalListener, remove: Deno.removeSignalListener };
  Deno.addSignalListener = (name) => void signals.push(`+${name}`);
  Deno.removeSignalListener = (name) => void signals.push(`-${name}`);
  try {
    await before.during((listening) => Promise.resolve(listening.release()));
    deepStrictEqual(signals, ["+SIGINT", "+SIGTERM", "-SIGINT", "-SIGTERM"]);
  } finally {
    Object.assign(Deno, { addSignalListener: real.add, removeSignalListener: real.remove });
  }
  deepStrictEqual(notes, []);
});

Deno.test("Ctrl-C while a configuration is still being read: one sentence, exit 130, no run", async () => {
  const home = await freshHome();
  // It is read until whoever writes into it is done, and that never comes.
  const config = `${home}/config.yaml`;
  await new Deno.Command("mkfifo", { args: [config] }).output();
  const running = start(["run", config, "--home", home]);
  const writer = await Deno.open(config, { write: true }); // Opens once the command reads.
  running.kill("SIGINT");
  const { code, err, out } = await running.ended;
  writer.close();
  deepStrictEqual([code, err, out], [
    130,
    "stopped before anything was recorded: there is no run to resume\n",
    "",
  ]);
  deepStrictEqual(await json(["runs", "--home", home]), []);
});
