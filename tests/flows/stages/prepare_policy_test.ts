import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert/strict";
import { Optimizer, VersionRecord } from "../../../data/mod.ts";
import { sha256Hex } from "../../../engine/mod.ts";
import { prepareCritic, preparePolicy, prepareReference } from "../../../flows/mod.ts";
import { fakeBench, valuesOf } from "./alone.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });

Deno.test("preparePolicy() names version 0 after the weights and the optimizer", async () => {
  const { artifacts, model, done, start } = await fakeBench();
  const policy = await done(preparePolicy, { model_path: model, optimizer });
  deepStrictEqual(policy, {
    version: policy.record.sha256,
    record: policy.record,
    number: 0,
    model_path: model,
  });
  const model_digest = sha256Hex(await Deno.readFile(`${model}/weights.json`));
  deepStrictEqual(
    VersionRecord.parse(await artifacts.getJson(policy.record)),
    { kind: "base", model_digest, optimizer, head: null, lora: null },
  );
  strictEqual((await start(0.1)).version, policy.version);
  notStrictEqual((await start(0.2)).version, policy.version);
});

Deno.test("preparePolicy() records the version and loads nothing", async () => {
  const { model, trainer, ran } = await fakeBench();
  const { rows } = await ran(preparePolicy, { model_path: model, optimizer });
  const [[version, note]] = Object.entries(valuesOf(rows, "note/version")) as [[string, object]];
  deepStrictEqual(note, {
    record: { sha256: version, bytes: (note as { record: { bytes: number } }).record.bytes },
    model_path: model,
    number: 0,
    steps: [],
  });
  deepStrictEqual([trainer.version, trainer.calls.map(({ op }) => op)], [null, ["inspect_model"]]);
});

Deno.test("prepareCritic() asks the value model's trainer, for a value head", async () => {
  const { artifacts, model, trainer, critic, ran } = await fakeBench();
  const { rows } = await ran(prepareCritic, { model_path: model, optimizer });
  const [[version, note]] = Object.entries(valuesOf(rows, "note/version")) as [
    [string, { group: string; record: { sha256: string; bytes: number } }],
  ];
  deepStrictEqual([note.group, note.record.sha256], ["critic", version]);
  const record = await artifacts.getJson(note.record) as { head: string };
  strictEqual(record.head, "value");
  deepStrictEqual([trainer.calls.length, critic.calls.map(({ op }) => op)], [0, ["inspect_model"]]);
});

Deno.test("prepareReference() records a version that is not one of the policy's", async () => {
  const { model, ran } = await fakeBench();
  const { rows } = await ran(prepareReference, { model_path: model, optimizer });
  const notes = Object.values(valuesOf(rows, "note/version")) as { group?: string }[];
  deepStrictEqual(notes.map(({ group }) => group), ["reference"]);
});

Deno.test("a fork may prepare anew only what its algorithm learns beside the policy", () => {
  deepStrictEqual(
    [preparePolicy, prepareCritic, prepareReference].map(({ fork }) => fork),
    [{ keeps: true }, { keeps: true, anew: true }, { keeps: true, anew: true }],
  );
});
