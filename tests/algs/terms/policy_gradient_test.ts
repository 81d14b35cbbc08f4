/** The loss that most algorithms share, and how much one has to read to know GRPO. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  policyGradient,
  traceAlgorithm,
} from "../../../algs/mod.ts";

const ROOM = new URL("../../../algs/", import.meta.url);
const read = (file: string): string => Deno.readTextFileSync(new URL(file, ROOM));

Deno.test("GRPO whole is at most 150 lines in 3 files", () => {
  const source = read("grpo.ts");
  const imported = [...source.matchAll(/ from "\.\/([^"]+)"/g)].map((found) => found[1]!);
  deepStrictEqual(imported.toSorted(), ["credit/baselines.ts", "terms/policy_gradient.ts"]);
  const lines = [source, ...imported.map(read)].map((text) => text.trimEnd().split("\n").length);
  const count = lines.reduce((sum, some) => sum + some);
  ok(count <= 150, `${count} lines: ${lines}`);
});

Deno.test("the file of the loss has every operation of its formula", () => {
  const { loss } = traceAlgorithm(ALGORITHMS.grpo, { dual_clip: 3, entropy_coef: 0.1 });
  const written = new Set(
    [...read("terms/policy_gradient.ts").matchAll(/(?:\.|\b)(\w+)\(/g)].map(([, name]) => name),
  );
  const aggregated = ["input", "scalar", "perSequenceMean", "stepSum", "div"];
  const used = new Set(loss.nodes.map(({ op }) => op as string));
  deepStrictEqual([...used].filter((op) => !written.has(op) && !aggregated.includes(op)), []);
});

Deno.test("no algorithm repeats the loss of a different one: its file says what differs", () => {
  const losses = Object.keys(ALGORITHMS).flatMap((name) => {
    const found = /^ {2}loss: [^]*?(?=^ {2}\w+: |^\}\);)/m.exec(read(`${name}.ts`));
    return found === null ? [] : [found[0]];
  });
  ok(losses.length > 0);
  strictEqual(new Set(losses).size, losses.length);
});

Deno.test("policyGradient() gives the clipped loss, with a term for each option that is on", () => {
  const plain = policyGradient({
    name: "plain",
    defaults: { clip_low: 0.1, clip_high: 0.3, aggregation: "token_mean" },
    settings: {},
    advantage: ({ reward }) => reward,
  });
  const text = JSON.stringify(traceAlgorithm(plain, {}).loss.nodes);
  match(text, /"op":"clamp","kind":"token","args":\[\d+\],"lo":0.9,"hi":1.3/);
  const inputs = (settings: unknown) => traceAlgorithm(plain, settings).loss.inputs;
  deepStrictEqual(inputs({}), ["advantage", "logp", "n_tokens", "old_logp"]);
  ok(inputs({ entropy_coef: 0.1 }).includes("entropy"));
  ok(inputs({ kl_coef: 0.1 }).includes("ref_logp"));
  ok(inputs({ importance: "token_truncate" }).includes("behaviour_logp"));
});

Deno.test("an algorithm's examples reach every term that all of them share", () => {
  const { examples = [] }: AnyAlgorithm = ALGORITHMS.grpo;
  const traced = examples.map((some) => traceAlgorithm(ALGORITHMS.grpo, some).loss);
  const read = new Set(traced.flatMap(({ inputs }) => inputs));
  const terms = ["entropy", "ref_logp", "behaviour_logp", "group_length", "coef.kl"];
  deepStrictEqual(terms.filter((name) => !read.has(name)), []);
});
