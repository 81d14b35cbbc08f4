import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ensureEnvironment, environmentKind } from "../../workers/mod.ts";
import { SMALL } from "./runs.ts";
import { disturbed } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/** Where Debian keeps it. */
const LIBRARY = `/usr/lib/${Deno.build.arch}-linux-gnu/faketime/libfaketimeMT.so.1`;

const missing = await Deno.stat(LIBRARY).then(() => false, () => true);
const ignore = missing && Deno.env.get("CI") !== "true"; // There it is a failure.
if (ignore) {
  console.log(
    `the tests of a clock that jumps are left out: ${LIBRARY} is not there (apt install faketime)`,
  );
}

const HOUR_S = 3600;
const JUMPS = { "an hour ahead": HOUR_S, "an hour back": -HOUR_S, "a day back": -24 * HOUR_S };

/** An environment in which the wall clock, and only that, is off by what the file says. */
const faked = (file: string) => ({
  LD_PRELOAD: LIBRARY,
  FAKETIME_TIMESTAMP_FILE: file,
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
  FAKETIME_NO_CACHE: "1",
});

for (const [name, seconds] of Object.entries(JUMPS)) {
  Deno.test({
    name:
      `the engine's clock jumps ${name}: no lease and no limit runs out, and the run ends equal`,
    ignore,
    fn: () =>
      withClock(async (file, python) => {
        const { shown, rows, finished } = await disturbed({
          against: await sharedUndisturbed(SMALL),
          overrides: [`trainer.python=${python("")}`, `sampler.python=${python("")}`],
          env: faked(file),
          disturb: async ({ reached }) => {
            await reached("engine", "append", 30);
            await jump(file, seconds);
          },
        });
        strictEqual(finished.code, 0);
        deepStrictEqual(shown.recoveries, []);
        strictEqual(shown.epoch, 1);
        const steps = rows.slice(1).map(({ at_ms }, i) => (at_ms - rows[i]!.at_ms) / 1000);
        ok(
          steps.some((step) => Math.abs(step - seconds) < HOUR_S / 2),
          "the clock of the journal did not jump",
        );
      }),
  });
}

Deno.test({
  name: "the workers' clock jumps a day back: nothing is taken for hung, and the run ends equal",
  ignore,
  fn: () =>
    withClock(async (file, python) => {
      const settings = Object.entries(faked(file)).map(([variable, value]) =>
        `${variable}=${value}`
      ).join(" ");
      const { shown } = await disturbed({
        against: await sharedUndisturbed(SMALL),
        overrides: [`trainer.python=${python(settings)}`, `sampler.python=${python(settings)}`],
        disturb: async ({ reached }) => {
          await reached("engine", "append", 30);
          await jump(file, JUMPS["a day back"]);
        },
      });
      deepStrictEqual(shown.recoveries, []);
      strictEqual(Math.round((await timeOf(python(settings)) - Date.now() / 1000) / HOUR_S), -24);
    }),
});

/** What an interpreter takes for the time, in seconds. */
async function timeOf(python: string): Promise<number> {
  const { stdout } = await new Deno.Command(python, {
    args: ["-c", "import time; print(time.time())"],
  }).output();
  return Number(new TextDecoder().decode(stdout));
}

/** Replaced whole: a clock is read at any moment. */
async function jump(file: string, seconds: number): Promise<void> {
  await Deno.writeTextFile(`${file}.new`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  await Deno.rename(`${file}.new`, file);
}

/**
 * Calls `work` with the file that says how far the clock is off, and with a maker of interpreters
 * under a clock of their own.
 */
async function withClock(
  work: (file: string, python: (settings: string) => string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-clock-" });
  try {
    await jump(`${dir}/clock`, 0);
    const real = await ensureEnvironment(environmentKind("torch"));
    const python = (settings: string) => {
      const script = `#!/bin/sh\nunset LD_PRELOAD\nexec env ${settings} ${real} "$@"\n`;
      Deno.writeTextFileSync(`${dir}/python`, script, { mode: 0o755 });
      return `${dir}/python`;
    };
    await work(`${dir}/clock`, python);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}
