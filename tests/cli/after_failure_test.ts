import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { afterFailure } from "../../cli/after_failure.ts";
import { BadDataError, sha256Hex, UserCodeError } from "../../engine/mod.ts";
import { forkRun, type Home } from "../../runs/mod.ts";
import { resumeOverrides } from "../../cli/resume_overrides.ts";
import { FakeTrainer } from "../../testing/mod.ts";

async function after(home: Home, message: string): Promise<string[]> {
  const head = (await home.store.head("a"))!;
  const error = new BadDataError(`Cannot continue. ${message}`).toJSON();
  return (await afterFailure(home, { head, error })).split("\n");
}

const ALGORITHM = `
def credit(round, c):
    return {"advantage": round.reward - round.reward.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
`;

Deno.test("a failed run whose error advises a setting of which results follow says which fork has it, and it runs", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const [resume, fork, ...rest] = await after(
    home,
    "Set trainer.lora.publish: merged, set trainer.packing: true",
  );
  match(resume!, /^Nothing recorded is lost\..*deno task rl resume a --home /);
  match(fork!, /^A resume cannot change trainer\.lora\.publish/);
  const [, round, override] = /a fork can: deno task rl fork a --round (\d+) (\S+) --home \S+$/
    .exec(rest[0]!)!;
  deepStrictEqual([round, override], ["2", "trainer.packing=true"]);
  await forkRun(home, (await home.store.head("a"))!, { round: 2, overrides: [override!], id: "b" });
  strictEqual((await executeFake(home, "b")).status, "done");
});

Deno.test("a failed run whose error advises what a resume takes, or nothing, advises the resume alone", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  strictEqual(
    (await after(
      home,
      "Fix: raise rollouts.failed_fraction_max, or lower trainer.micro_batch_tokens_max",
    )).length,
    1,
  );
  strictEqual((await after(home, "The disk is full")).length, 1);
  const [alike, neither] = await after(home, "Fix: start a new run with model.path: other");
  strictEqual(alike, "Nothing recorded is lost, but a resume would fail alike");
  for (const also of ["restore it and resume, or start a new run", "start a new run, or resume"]) {
    match(
      (await after(home, `Fix: ${also}`))[0]!,
      /^Nothing recorded is lost\. Fix the cause, then/,
    );
  }
  match(
    neither!,
    /^Neither a resume nor a fork can change model\.path of this run: start a new one/,
  );
  const [, early] = await after(
    home,
    "Fix: start a new run with data.on_long_prompt: drop or truncate_left",
  );
  match(early!, /a fork can: deno task rl fork a --round 0 data\.on_long_prompt=drop --home/);
});

Deno.test("a run that fails in an algorithm's file says which fork has the file as it is now, and settings may change all the same", async () => {
  const home = await freshFakeHome();
  const source = `${home.dir}/mine.py`;
  await Deno.writeTextFile(source, ALGORITHM);
  const sha256 = sha256Hex(new TextEncoder().encode(ALGORITHM));
  await createFakeRun(home, "a", {
    rounds: 3,
    algorithm: { name: "python", source, settings: {}, sha256 },
  });
  const cause = new UserCodeError("Cannot compute the loss: NameError");
  const trainer = new FakeTrainer({
    artifacts: home.artifacts,
    hook: ({ op, key }) => {
      if (op === "train" && key.startsWith("round/3/")) throw cause;
    },
  });
  strictEqual((await executeFake(home, "a", { trainer })).status, "failed");
  const head = (await home.store.head("a"))!;
  const [, advice] = (await afterFailure(home, { head, error: cause.toJSON() })).split("\n");
  match(
    advice!,
    /mine\.py: a resume keeps the recorded version\. To use the current version: deno task rl fork a --round 2 --home \S+$/,
  );
  await Deno.writeTextFile(source, `${ALGORITHM}\n# repaired`);
  const { settings, refused } = await resumeOverrides(home, head, {
    overrides: ["workers.port=9001"],
  });
  deepStrictEqual([settings.map(({ path }) => path), refused], [["workers.port"], []]);
  const child = await forkRun(home, head, { round: 2, id: "b" });
  strictEqual(JSON.parse(child.config).algorithm.sha256 === sha256, false);
  strictEqual((await executeFake(home, "b")).status, "done");
});
