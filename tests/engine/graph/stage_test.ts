import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { defineStage, type RecordingContext } from "../../../engine/mod.ts";
import { attemptsFor, slotsOf } from "../../../engine/graph/stage.ts";

const shape = { version: 1, input: z.number(), output: z.number(), run: (n: number) => n };
const NOBODY = {} as RecordingContext;

Deno.test("defineStage() runs on the engine and replays exactly, by default", () => {
  const { runs_on, phase, replay, eager } = defineStage({ ...shape, name: "one" });
  deepStrictEqual({ runs_on, phase, replay, eager }, {
    runs_on: "engine",
    phase: "other",
    replay: "error",
    eager: false,
  });
});

Deno.test("defineStage() refuses a name that could not be part of a key", () => {
  for (const name of ["", "a b", "a/b", "a#1", "ä"]) {
    throws(() => defineStage({ ...shape, name }), {
      name: "RangeError",
      message: `Cannot define stage '${name}' because its name is part of keys: use letters, ` +
        "digits, _ . -",
    });
  }
  strictEqual(defineStage({ ...shape, name: "a.B_c-1" }).name, "a.B_c-1");
});

Deno.test("defineStage() refuses slots for a stage of the engine", () => {
  throws(() => defineStage({ ...shape, name: "one", slots: { gpu: 1 } }), /because it runs on the/);
});

Deno.test("body() turns a synchronous throw into a rejection", async () => {
  const run = () => {
    throw new TypeError("bug");
  };
  await rejects(defineStage({ ...shape, name: "one", run }).body(1, NOBODY), /^TypeError: bug$/);
  strictEqual(await defineStage({ ...shape, name: "one" }).body(7, NOBODY), 7);
});

Deno.test("slotsOf() is one of the stage's group unless it names its slots", () => {
  deepStrictEqual(slotsOf({ runs_on: "sampler" }), { sampler: 1 });
  deepStrictEqual(slotsOf({ runs_on: "sampler", slots: { cpu: 2 } }), { cpu: 2 });
});

Deno.test("attemptsFor() is the stage's number, for every cause or for the one it names", () => {
  const budgets = (stage: Parameters<typeof attemptsFor>[0]) =>
    (["timeout", "worker_lost", "user_code", "bad_data"] as const).map((cause) =>
      attemptsFor(stage, cause)
    );
  deepStrictEqual(budgets({}), [3, 3, 1, 1]);
  deepStrictEqual(budgets({ attempts_max: 2 }), [2, 2, 2, 2]);
  deepStrictEqual(budgets({ attempts_max: { user_code: 5 } }), [3, 3, 5, 1]);
});
