import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { afterFailure } from "../../cli/after_failure.ts";
import { OnlineConfig } from "../../configs/mod.ts";
import { advisedSettings } from "../../cli/advised_settings.ts";
import { BadDataError } from "../../engine/mod.ts";
import { forkRun, type Home } from "../../flows/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../flows/fake_home.ts";

Deno.test("advisedSettings() finds what a message tells people to change, its value, and whether a resume may", () => {
  const text =
    "Cannot pack as trainer.ranks is 2 and data.train: row 3 is odd, in trainer.json: set trainer.packing: false, " +
    "lower sampler.tokens_max, or checkpoints.keep_last. Use trainer.nothing";
  deepStrictEqual(advisedSettings(OnlineConfig, text), [
    { path: "trainer.packing", value: "false", resume: false },
    { path: "sampler.tokens_max", value: null, resume: false },
    { path: "checkpoints.keep_last", value: null, resume: true },
  ]);
});

async function after(home: Home, message: string): Promise<string[]> {
  const head = (await home.store.head("a"))!;
  const error = new BadDataError(`Cannot go on. ${message}`).toJSON();
  return (await afterFailure(home, { head, error })).split("\n");
}

Deno.test("a failed run whose error advises a setting of which results follow says which fork has it, and it runs", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const [resume, fork, ...rest] = await after(home, "Set trainer.lora.publish: merged, set trainer.packing: true");
  match(resume!, /^Nothing recorded is lost\..*deno task rl resume a --home /);
  match(fork!, /^A resume cannot change trainer\.lora\.publish/);
  const [, round, override] = /a fork can: deno task rl fork a --round (\d+) (\S+) --home \S+$/.exec(rest[0]!)!;
  deepStrictEqual([round, override], ["2", "trainer.packing=true"]);
  await forkRun(home, (await home.store.head("a"))!, { round: 2, overrides: [override!], id: "b" });
  strictEqual((await executeFake(home, "b")).status, "done");
});

Deno.test("a failed run whose error advises what a resume takes, or nothing, advises the resume alone", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  strictEqual(
    (await after(home, "Fix: raise rollouts.failed_fraction_max, or lower trainer.micro_batch_tokens_max")).length,
    1,
  );
  strictEqual((await after(home, "The disk is full")).length, 1);
  const [, neither] = await after(home, "Fix: start a new run with data.on_long_prompt: drop");
  match(neither!, /^Neither a resume nor a fork can change data\.on_long_prompt of this run: start a new one/);
});
