import { deepStrictEqual, match, ok } from "node:assert/strict";
import { parse } from "yaml";
import { z } from "zod";
import { ALGORITHMS, type AnyAlgorithm, defineAlgorithm, tokenMean } from "../../../algs/mod.ts";
import { loadConfig } from "../../../configs/mod.ts";
import { configStub, pageStub, templateOf } from "../../../docs/generate/algorithm_stubs.ts";

const toy: AnyAlgorithm = defineAlgorithm({
  name: "toy",
  about: "Only for a test.",
  config: z.strictObject({
    small: z.number().default(1e-7).describe("A number."),
    mode: z.enum(["none", "some"]).default("some").describe("A choice."),
  }),
  loss: ({ logp }) => ({ loss: tokenMean(logp.neg()), metrics: { "policy/toy": tokenMean(logp) } }),
});

const SOURCE = `/**
 * Toy optimisation. Nobody 2030, arXiv:3001.00001.
 *
 *     L = − log π
 *     A = 0
 *
 * It has no advantage.
 *
 * When: a test needs it.
 *
 * Differences from the paper: there is none.
 *
 * Peers: TRL has arXiv:3001.00002.
 */
export const toy = 1;
`;
const ROOT = new URL("../../../", import.meta.url);
const read = (path: string): Promise<string> => Deno.readTextFile(new URL(path, ROOT));
const TEMPLATE = await read("configs/algorithms/grpo.yaml");

/** Text of a page between a heading and the next one. */
function section(page: string, heading: string): string {
  const after = page.split(`\n## ${heading}\n\n`)[1] ?? "";
  return after.split("\n\n## ")[0]!.trim();
}

Deno.test("pageStub() has the header in sections, each setting and each own metric", () => {
  const page = pageStub(toy, { source: SOURCE, parts: "`policy/other`" });
  match(page, /^# toy\n\nToy optimisation\. Nobody 2030, \[arXiv:3001\.00001\]\(https:[^)]+\)\.\n/);
  ok(page.includes("It has no advantage.\n\n```text\nL = − log π\nA = 0\n```\n"));
  ok(page.includes("\n**When:** a test needs it.\n"));
  ok(section(page, "The file").startsWith("```ts shows=algs/toy.ts"));
  deepStrictEqual(section(page, "Settings").split("\n").slice(2), [
    "| `small` | 1e-7 | A number. |",
    "| `mode` | some | A choice. |",
  ]);
  match(section(page, "Differences from the paper"), /^there is none\.$/);
  match(section(page, "Peers"), /^TRL has \[arXiv:3001\.00002\]/);
  match(section(page, "Metrics"), /`policy\/toy`/);
});

Deno.test("pageStub() says what a header lacks, and does not repeat shared metrics", () => {
  const page = pageStub(toy, { source: "export const toy = 1;\n", parts: "`policy/toy`" });
  match(page, /^# toy\n\nOnly for a test\.\n\n\*\*When:\*\* only for a test\.\n/);
  match(section(page, "Peers"), /^The file's header names none\.$/);
  ok(!section(page, "Metrics").includes("policy/toy"));
});

Deno.test("configStub() is the configuration of the most similar algorithm, renamed", () => {
  const [like, stub] = [parse(TEMPLATE), parse(configStub(toy, TEMPLATE))];
  deepStrictEqual(stub, { ...like, name: "toy", algorithm: "toy" });
  match(
    configStub(toy, TEMPLATE),
    /^# Run it: {2}deno task rl run configs\/algorithms\/toy\.yaml$/m,
  );
  const valued = parse(configStub({ ...toy, value_loss: toy.loss }, TEMPLATE));
  deepStrictEqual(valued.value_model, { optimizer: { lr: 2e-3 } });
});

Deno.test("templateOf() is the configuration of what learns from the same", () => {
  const like = (name: keyof typeof ALGORITHMS) =>
    templateOf({ ...ALGORITHMS[name], name: "toy" }).replace(/^configs\/(.*)\.yaml$/, "$1");
  deepStrictEqual(like("ppo"), "algorithms/grpo");
  deepStrictEqual(like("reward_model"), "algorithms/reward_model");
  deepStrictEqual(like("dpo"), "algorithms/dpo");
  deepStrictEqual(like("kto"), "algorithms/kto");
  deepStrictEqual(like("sft"), "sft");
  deepStrictEqual(templateOf(toy), "configs/sft.yaml");
});

Deno.test("configStub() of a supervised algorithm reads the files of sft.yaml", async () => {
  const template = await read("configs/sft.yaml");
  const stub = configStub(toy, template);
  deepStrictEqual(stub.split("\n").slice(0, 4), [
    "# yaml-language-server: $schema=../holdfast.schema.json",
    "# toy: Only for a test. On the model and the rows of sft.yaml.",
    "# Fetch its model and data:  deno task rl fetch configs/algorithms/toy.yaml",
    "# Run it:  deno task rl run configs/algorithms/toy.yaml",
  ]);
  const dir = await Deno.makeTempDir({ prefix: "holdfast-stub-" });
  try {
    await Deno.mkdir(`${dir}/configs/algorithms`, { recursive: true });
    await Deno.writeTextFile(`${dir}/configs/sft.yaml`, template);
    // The toy is in no table: the file of the algorithm that it is like has its paths.
    const renamed = stub.replace("algorithm: toy", "algorithm: sft").replace(
      "name: toy",
      "name: sft",
    );
    await Deno.writeTextFile(`${dir}/configs/algorithms/sft.yaml`, renamed);
    const [like, loaded] = await Promise.all(
      ["configs/sft.yaml", "configs/algorithms/sft.yaml"].map((file) =>
        loadConfig(`${dir}/${file}`, { files_missing: true })
      ),
    );
    deepStrictEqual(loaded!.config, like!.config);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
