import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { decodeSlab, Sampling } from "../../data/mod.ts";
import { type Complete, FakeSampler, writeFakeModel } from "../../testing/mod.ts";

const caller = { key: "k", attempt: 1, record: () => Promise.resolve() } as never;
const row = { row_id: "r", prompt: "1+1", columns: {} };
const slab = { id: "s", draws: [{ draw: 3, row }, { draw: 4, row }] };

/** A sampler with version `v` of these weights loaded. */
async function loaded(weights: number, complete?: Complete) {
  const dir = await Deno.makeTempDir({ prefix: "fake_sampler_test_" });
  const { digest, file } = await writeFakeModel(dir, weights);
  const sampler = new FakeSampler({ complete });
  const publication = { version: "v", dir, digest, tensors: [], files: [file] };
  await sampler.call("load", { version: "v", model_path: dir, publication }, caller);
  return sampler;
}
async function generate(sampler: FakeSampler, changes: object = {}) {
  const sampling = Sampling.parse({});
  const drawn = { sampling, seed: 1 };
  const args = { version: "v", slab, samples_per_prompt: 2, ...drawn, ...changes };
  const { outputs: [output], blobs } = await sampler.call("generate", args, caller);
  return { output, blobs };
}
const texts = async (sampler: FakeSampler, changes?: object) => {
  const { blobs: [blob] } = await generate(sampler, changes);
  return decodeSlab(blob!).groups.flatMap(({ trajectories }) => trajectories.map((t) => t.text));
};

Deno.test("FakeSampler: weights, seed, draw and sample decide what it says", async () => {
  const first = await texts(await loaded(0.5));
  strictEqual(first.length, 4);
  ok(first.every((text) => /^\d{1,8}$/.test(text)), first.join());
  deepStrictEqual(await texts(await loaded(0.5)), first);
  const others = [await texts(await loaded(0.25)), await texts(await loaded(0.5), { seed: 2 })];
  ok(others.every((other) => other.join() !== first.join()));
});

Deno.test("FakeSampler: a sample is a prompt token, its characters, a stop token", async () => {
  const sampler = await loaded(0.5, ({ draw, sample }) => `${draw}${sample}!`);
  const { output, blobs: [blob] } = await generate(sampler);
  const [group] = decodeSlab(blob!).groups;
  const [, second] = group!.trajectories;
  strictEqual(second!.text, "31!");
  deepStrictEqual([...second!.tokens], [1, ...[..."31!"].map((c) => c.charCodeAt(0)), 0]);
  deepStrictEqual([...second!.action_mask], [0, 1, 1, 1, 1]);
  deepStrictEqual(output, {
    version: "v",
    groups: 2,
    samples: 4,
    tokens: 16,
    prompt_tokens: 2,
    seconds: 0,
  });
});

Deno.test("FakeSampler refuses to sample at a version that it does not hold", async () => {
  const sampler = await loaded(0.5);
  deepStrictEqual((await generate(sampler, { version: "w" })).output, { not_resident: "v" });
  sampler.forget();
  deepStrictEqual((await generate(sampler)).output, { not_resident: null });
});

Deno.test("FakeSampler refuses operations that a sampler lacks", async () => {
  await rejects(new FakeSampler().call("train", {}, caller), /the fake sampler has no such operat/);
});
