/** Every setting of every block of every flow says all about itself. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import { FLOWS, type Setting, settingsOf } from "../../../configs/mod.ts";
import { bare } from "../../../configs/settings/schema_walk.ts";
import { Numerics, setting } from "../../../data/mod.ts";
import { ModelOpening, TrainerConfig, ValueModelConfig } from "../../../workers/mod.ts";

const ALL = Object.entries(FLOWS).flatMap(([flow, schema]) =>
  settingsOf(schema).map((one) => ({ ...one, flow }))
);
const LEAVES = ALL.filter(({ block }) => !block);
const FACTS = ["numerics", "fork", "resume"] as const;

/** What a setting lacks. It has what its blocks have declared. */
function lacking({ path, facts, schema }: Pick<Setting, "path" | "facts" | "schema">): string[] {
  const absent = [
    ...FACTS.filter((fact) => facts[fact] === undefined),
    ...(schema.description === undefined ? ["description"] : []),
  ];
  return absent.map((fact) => `${path}: ${fact}`);
}

Deno.test("every setting of every flow has all facts and a description", () => {
  ok(LEAVES.length > 500, "settings are found");
  deepStrictEqual(LEAVES.flatMap(lacking), []);
});

Deno.test("a setting without facts and a description would be found", () => {
  const Block = z.strictObject({ bare: z.int().default(1) }).register(setting, { numerics: false });
  const found = settingsOf(z.strictObject({ block: Block.prefault({} as never) })).filter((
    { block },
  ) => !block);
  deepStrictEqual(found.flatMap(lacking), [
    "block.bare: fork",
    "block.bare: resume",
    "block.bare: description",
  ]);
});

/** The words for a unit, in a name or at the start of a description. */
const IN_NAME =
  /_(s|ms|gib|mib|tokens|rounds|steps|batches|fraction_max|processes(_max)?|tokens_max|length_max)$|_per_/;
const IN_TEXT =
  /^(As |Only the first |Number of |Maximum |Newest |First |Total |CPU |Trained |Consecutive )?(seconds|tokens|rounds|steps|rows|pairs|prompts|samples|processes|threads|passes|problems|groups|completions|optimizer steps|gib)\b/i;

function isNumber(schema: z.ZodType): boolean {
  return bare(schema) instanceof z.ZodNumber;
}

Deno.test("every number with a unit in its name or its description has the unit, and no other value has one", () => {
  const numbers = LEAVES.filter(({ schema }) => isNumber(schema));
  const withUnits = numbers.filter(({ path, schema }) =>
    IN_NAME.test(path) || IN_TEXT.test(schema.description ?? "")
  );
  ok(withUnits.length > 100, "units are found");
  deepStrictEqual(
    withUnits.filter((one) => one.declared.unit === undefined).map(({ path }) => path),
    [],
  );
  deepStrictEqual(
    LEAVES.filter((one) => one.declared.unit !== undefined && !isNumber(one.schema)).map((
      { path },
    ) => path),
    [],
  );
});

Deno.test("the numerics that a version records are the settings that say so", () => {
  const names = (shape: z.ZodRawShape) =>
    Object.entries(shape).filter(([, field]) => setting.get(field as z.ZodType)?.numerics).map((
      [name],
    ) => name);
  // Of the environment, not a setting.
  const recorded = Object.keys(Numerics.shape).filter((name) => name !== "packages");
  const policy = [...names(TrainerConfig.shape), ...names(ModelOpening.shape)];
  deepStrictEqual(
    policy.map((name) => name === "ranks" ? "world_size" : name).toSorted(),
    recorded.toSorted(),
  );
  const shared = Object.keys(ValueModelConfig.shape).filter((name) => policy.includes(name));
  deepStrictEqual(names(ValueModelConfig.shape).toSorted(), shared.toSorted());
});

Deno.test("what a replan changes is a numeric setting or a place, and no other setting of the run is one", () => {
  const replanned = LEAVES.filter(({ facts }) => facts.resume === "replan").map(({ path }) => path);
  const fields = ["micro_batch_tokens_max", "ranks", "devices"];
  const expected = ["trainer", "value_model"].flatMap((block) =>
    fields.map((name) => `${block}.${name}`)
  );
  deepStrictEqual([...new Set(replanned)].toSorted(), expected.toSorted());
});

/**
 * Rooms that carry rules out. What a rule says of one setting stands where the setting is declared.
 */
const ROOMS = ["cli", "engine", "flows", "runs", "workers"];
/** Rules about two settings; and what stands before a number in a message. */
const NAMED: Record<string, string[]> = {
  "runs/forks/fixed_by_prefix.ts": ["evaluate.problems", "reference.path", "algorithm.kl_coef"],
  "runs/checks/questions.ts": [
    "sampler.max_model_len",
    "warmup.rows_per_round",
    "online.prompts_per_round",
  ],
};

Deno.test("no list has settings by their paths, except for rules about two of them", () => {
  const known = new Set(LEAVES.map(({ path }) => path));
  const root = new URL("../../../", import.meta.url);
  const sources = (dir: string): string[] =>
    [...Deno.readDirSync(new URL(dir, root))].flatMap(({ name, isDirectory }) =>
      isDirectory ? sources(`${dir}/${name}`) : name.endsWith(".ts") ? [`${dir}/${name}`] : []
    );
  const found = ROOMS.flatMap(sources).flatMap((file) => {
    const text = Deno.readTextFileSync(new URL(file, root));
    const paths = [...text.matchAll(/"([a-z_]+(?:\.[a-z_]+)+)"/g)].map(([, path]) => path!);
    const named = [...new Set(paths.filter((path) => known.has(path)))];
    return named.length === 0 ? [] : [[file, named] as const];
  });
  deepStrictEqual(Object.fromEntries(found), NAMED);
});
