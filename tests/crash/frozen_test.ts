import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { at, rl, SMALL } from "./runs.ts";
import { disturbed, isStopped, until } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/**
 * SIGSTOP: alive for the kernel, deaf for everybody else. The limits are short, so that it is
 * noticed soon.
 */
const SHORT = ["workers.no_progress_s=4", "workers.silent_s=4"];

const FROZEN = [["trainer", "op:38"], ["sampler", "op:25"], ["agent", "frame:77"]] as const;

for (const [place, fault] of FROZEN) {
  Deno.test(`a frozen ${place} is taken for hung and replaced, and the run ends equal`, async () => {
    const against = await sharedUndisturbed(SMALL);
    const { shown, finished } = await disturbed({
      against,
      overrides: SHORT,
      env: { HOLDFAST_FAULT: `stop:${place}@${fault}` },
      disturb: async () => {},
    });
    strictEqual(finished.code, 0);
    ok(shown.recoveries.length > 0, "nothing was recovered");
  });
}

Deno.test("an engine that was frozen for a while goes on with the same workers", async () => {
  const against = await sharedUndisturbed(SMALL);
  const { shown } = await disturbed({
    against,
    env: { HOLDFAST_FAULT: "stop:engine@append:40" },
    disturb: async ({ engine }) => {
      await until("the engine stands still", () => isStopped(engine.pid));
      await new Promise((resolve) => setTimeout(resolve, 2000));
      engine.kill("SIGCONT");
    },
  });
  deepStrictEqual(shown.recoveries, []);
});

Deno.test("an engine that wakes up after another took its run over writes nothing and touches no worker", async () => {
  const against = await sharedUndisturbed(SMALL);
  const groups = ["trainer", "sampler/0"];
  const { finished, shown } = await disturbed({
    against,
    env: { HOLDFAST_FAULT: "stop:engine@append:40" },
    disturb: async ({ engine, place, run, pids }) => {
      await until("the engine stands still", () => isStopped(engine.pid));
      const before = await Promise.all(groups.map(pids));
      let taken = await rl(["resume", run, ...at(place)], {});
      strictEqual(taken.code, 2, taken.output); // Its lease is fresh.
      await until("the lease has run out", async () => {
        taken = await rl(["resume", run, ...at(place)], {});
        return taken.code !== 2;
      });
      strictEqual(taken.code, 0, taken.output);
      deepStrictEqual(await Promise.all(groups.map(pids)), before);
      engine.kill("SIGCONT");
    },
  });
  ok(finished.output.includes("was taken over by another engine"), finished.output);
  strictEqual(shown.epoch, 2);
  deepStrictEqual(shown.recoveries.map(({ action }) => action), ["adopt"]);
});
