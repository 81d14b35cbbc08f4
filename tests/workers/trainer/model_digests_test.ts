import { match, ok, rejects, strictEqual } from "node:assert/strict";
import { Optimizer } from "../../../data/mod.ts";
import { ArtifactStore, BadDataError, ManualClock } from "../../../engine/mod.ts";
import { type Caller, PolicyTrainer } from "../../../workers/mod.ts";
import { FakeTrainer, writeFakeModel } from "../../../testing/mod.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });

type Recorded = { kind: string; key: string; value: unknown };
const rows: Recorded[] = [];
const caller: Caller = {
  key: "train#1",
  attempt: 1,
  record: (kind, key, value) => Promise.resolve(void rows.push({ kind, key, value })),
};

/** A trainer of a new engine, whose ranks hold nothing. */
function opened(dir: string) {
  const artifacts = new ArtifactStore(`${dir}/artifacts`);
  const ranks = new FakeTrainer({ artifacts });
  const common = {
    artifacts,
    clock: new ManualClock(),
    recorded: rows,
    checkpoints_dir: `${dir}/checkpoints`,
  };
  const numerics = (tokens: number) => ranks.numerics(tokens);
  return { ranks, artifacts, trainer: new PolicyTrainer({ operator: ranks, numerics, ...common }) };
}

async function keptBase(dir: string, path: string, group?: string) {
  const { policy, note } = await opened(dir).trainer.base(path, optimizer, caller);
  rows.push({
    kind: "note/version",
    key: policy.version,
    value: { ...note, ...(group && { group }) },
  });
  return policy;
}

Deno.test("a model whose weights changed since they were recorded is refused by name", async () => {
  const dir = await Deno.makeTempDir({ prefix: "changed_model_" });
  rows.length = 0;
  try {
    const [base, reference] = [`${dir}/model`, `${dir}/reference`];
    await writeFakeModel(base, 0.5);
    await writeFakeModel(reference, 0.25);
    const policy = await keptBase(dir, base);
    await keptBase(dir, reference, "reference");
    const publish = (): Promise<unknown> =>
      opened(dir).trainer.publish(policy, `${dir}/out`, caller);
    const score = async (): Promise<unknown> => {
      const { trainer, artifacts } = opened(dir);
      const batch = await artifacts.putJson({
        kind: "supervised",
        rows: [],
        temperature: 1,
        updates: [[0]],
      });
      const work = { policy, batch, columns: ["ref_logp" as const], micro_batch_tokens_max: 64 };
      return await trainer.score(
        { ...work, reference_path: reference, reference_offload: false },
        caller,
      );
    };
    for (const [path, whole, open] of [[base, 0.5, publish], [reference, 0.25, score]] as const) {
      await open();
      await writeFakeModel(path, 0.75);
      await rejects(open(), (error: Error) => {
        ok(error instanceof BadDataError && !error.retryable);
        ok(error.message.includes(`'${path}'`), error.message);
        match(
          error.message,
          /digest is [0-9a-f]{12}, recorded [0-9a-f]{12}\. Fix: restore the recorded weights/,
        );
        return true;
      });
      await writeFakeModel(path, whole);
      await open();
    }
    strictEqual(rows.filter(({ kind }) => kind === "note/checkpoint_set_aside").length, 0);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
