import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { parse } from "yaml";
import { FLOWS, parseConfig } from "../../../configs/mod.ts";
import { PEER_NAMES, peerHint } from "../../../configs/settings/peer_names.ts";
import { fieldPaths } from "../../../configs/settings/schema_walk.ts";

const PATHS = new Map(Object.entries(FLOWS).map(([flow, schema]) => [flow, fieldPaths(schema)]));

type Schema = {
  $ref?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  const?: unknown;
  enum?: unknown[];
};
const SCHEMA = JSON.parse(
  await Deno.readTextFile(new URL("../../../configs/holdfast.schema.json", import.meta.url)),
);

/**
 * Whether a part of a configuration can stand there: its keys, and its values where they are one of
 * several words.
 */
function admits(schema: Schema, part: unknown): boolean {
  if (schema.$ref) return admits(SCHEMA.$defs[schema.$ref.split("/").at(-1)!], part);
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) return branches.some((branch) => admits(branch, part));
  if (Array.isArray(part)) {
    return schema.items !== undefined && part.every((one) => admits(schema.items!, one));
  }
  if (part !== null && typeof part === "object") {
    return Object.entries(part).every(([key, value]) => {
      const field = schema.properties?.[key] ?? schema.additionalProperties;
      return typeof field === "object" && admits(field, value);
    });
  }
  if (part === ANY) return true;
  return schema.const === undefined && schema.enum === undefined || schema.const === part ||
    schema.enum?.includes(part) === true;
}

const ANY = "...";
const nested = (path: string, value: unknown): unknown =>
  path.split(".").reduceRight((inner, key) => ({ [key]: inner }), value);

/**
 * What a hint says to write: `a: { b: ... }` or `a: [...]`, and after `set` or `or` also `a.b` and
 * `a.b: word`.
 */
function settingsIn(hint: string): unknown[] {
  const block = /([\w.]+): ([{[].*?[}\]](?: ?[}\]])*)/g;
  const rest = hint.replaceAll(block, "");
  return [...hint.matchAll(block), ...rest.matchAll(/\b(?:set|or) ([\w.]+)(?:: (\w+))?/g)].map((
    [, path, text],
  ) => nested(path!, text === undefined ? ANY : parse(text)));
}

/** Names whose answer is no setting: what their hints name instead. */
const ELSEWHERE: Record<string, RegExp> = {
  output_dir: /--home DIR/,
  ckpt_path: /--home DIR/,
  logging_steps: /runs\/RUN\/metrics\.jsonl/,
};

Deno.test("every peer's name leads to a setting that the schema has, with a value that it takes", () => {
  const usual = ["beta", "kl_coef", "tensor_parallel_size", "learning_rate", "wandb", "logging"];
  for (const name of usual) {
    ok(PEER_NAMES[name], name);
  }
  for (const [name, known] of Object.entries(PEER_NAMES)) {
    const elsewhere = ELSEWHERE[name];
    const settings = typeof known === "string"
      ? settingsIn(known)
      : known.map((path) => nested(path, ANY));
    strictEqual(settings.length === 0, elsewhere !== undefined, `${name}: ${known}`);
    if (elsewhere) match(String(known), elsewhere);
    for (const part of settings) {
      ok(admits(SCHEMA, part), `${name}: no flow has ${JSON.stringify(part)}`);
    }
  }
});

Deno.test("every peer's name is answered by every flow that has what it leads to", async () => {
  for (const [flow, paths] of PATHS) {
    const text = `flow: ${flow}\n${Object.keys(PEER_NAMES).map((name) => `${name}: 1\n`).join("")}`;
    const problems = await parseConfig(text, { file: "x.yaml" }).then(
      () => "",
      (error: Error) => error.message,
    );
    for (const [name, known] of Object.entries(PEER_NAMES)) {
      const ours = typeof known === "string" ? known : known.find((path) => paths.includes(path));
      if (ours === undefined) continue;
      const hint = typeof known === "string" ? `(${ours})` : `(here it is ${ours})`;
      ok(
        problems.includes(` ${name}: unknown key ${hint}`),
        `${flow} ${name}: ${hint} is not in\n${problems}`,
      );
    }
  }
});

Deno.test("peerHint() names what the flow at hand has", () => {
  strictEqual(
    peerHint("learning_rate", PATHS.get("online")!),
    " (here it is trainer.optimizer.lr)",
  );
  strictEqual(
    peerHint("learning_rate", PATHS.get("quickstart")!),
    " (here it is online.optimizer.lr)",
  );
  strictEqual(
    peerHint("learning_rate", PATHS.get("preference")!),
    " (here it is trainer.optimizer.lr)",
  );
  strictEqual(peerHint("num_generations", PATHS.get("supervised")!), "");
  match(peerHint("report_to", []), /track: \[\{ name: wandb \}\]/);
});

Deno.test("a peer's name is answered with ours, at the top and in a block", async () => {
  const text =
    "flow: quickstart\nreport_to: wandb\nsampler: { max_new_tokens: 8 }\ntrainer: { learning_rate: 1 }\n" +
    "warmup: { rounds: 1, rows_per_round: 4 }\nonline: { rounds: 1, prompts_per_round: 4, samples_per_prompt: 2 }\n";
  await rejects(parseConfig(text, { file: "x.yaml" }), (error) => {
    const lines = String((error as Error).message).split("\n");
    deepStrictEqual(lines.map((line) => line.replace(/^\S+ /, "")), [
      "report_to: unknown key (set track: [{ name: wandb }]; docs/trackers.md lists the trackers)",
      "sampler.max_new_tokens: unknown key (here it is sampler.tokens_max)",
      "trainer.learning_rate: unknown key (here it is online.optimizer.lr)",
    ]);
    return true;
  });
});
