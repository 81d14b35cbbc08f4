import { deepStrictEqual, notDeepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { ArtifactStore } from "../../engine/mod.ts";
import { FakeTrainer } from "../../testing/mod.ts";

async function world() {
  const dir = await Deno.makeTempDir({ prefix: "fake_trainer_test_" });
  const artifacts = new ArtifactStore(`${dir}/artifacts`);
  return { dir, artifacts, caller: { key: "k", attempt: 1, record: () => Promise.resolve() } };
}
const recipe = "tiny";

Deno.test("FakeTrainer makes the same model of the same recipe and seed", async () => {
  const { dir, artifacts, caller } = await world();
  const trainer = new FakeTrainer({ artifacts });
  const make = async (seed: number, name: string) => {
    const args = { recipe, seed, dir: `${dir}/${name}` };
    const { outputs: [created] } = await trainer.call("create_model", args, caller as never);
    return (created as { digest: string }).digest;
  };
  strictEqual(await make(1, "a"), await make(1, "b"));
  notDeepStrictEqual(await make(1, "a"), await make(2, "c"));
});

Deno.test("FakeTrainer says that it holds no version after a start", async () => {
  const { dir, artifacts, caller } = await world();
  const trainer = new FakeTrainer({ artifacts });
  const save = { version: "v1", dir: `${dir}/saved` };
  const { outputs } = await trainer.call("save", save, caller as never);
  deepStrictEqual(outputs, [{ not_resident: null }]);
});

Deno.test("FakeTrainer counts its calls and lets a hook break them", async () => {
  const { dir, artifacts, caller } = await world();
  const trainer = new FakeTrainer({ artifacts });
  const args = { recipe, seed: 1, dir: `${dir}/a` };
  trainer.hook = ({ op }, moment) => {
    if (op === "create_model" && moment === "done") throw new Error("pulled out");
  };
  await rejects(trainer.call("create_model", args, caller as never), /pulled out/);
  deepStrictEqual(trainer.calls, [{ op: "create_model", args, key: "k" }]);
});

Deno.test("FakeTrainer refuses operations that a trainer lacks", async () => {
  const { artifacts, caller } = await world();
  const trainer = new FakeTrainer({ artifacts });
  await rejects(trainer.call("dance", {}, caller as never), /the fake trainer has no such operat/);
});
