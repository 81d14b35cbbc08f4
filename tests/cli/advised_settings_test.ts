import { deepStrictEqual } from "node:assert/strict";
import { OnlineConfig } from "../../configs/mod.ts";
import { advisedSettings } from "../../cli/advised_settings.ts";

Deno.test("advisedSettings() finds what a message tells people to change, its value, and whether a resume may", () => {
  const text =
    "Cannot pack because trainer.ranks is 2 and data.train: row 3 is odd, in trainer.json: set trainer.packing: false, " +
    "lower sampler.tokens_max, or checkpoints.keep_last. Use trainer.nothing";
  deepStrictEqual(advisedSettings(OnlineConfig, text), [
    { path: "trainer.packing", value: "false", resume: false },
    { path: "sampler.tokens_max", value: null, resume: false },
    { path: "checkpoints.keep_last", value: null, resume: true },
  ]);
});
