/**
 * Each setting of a block that worker processes read, changed alone, changes what they receive: how they are started, or the arguments of
 * their operations. What they receive is whole (`wire_types.py`), so no default of a worker can stand in for a setting's.
 */
import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { ModelConfig } from "../../configs/mod.ts";
import { online } from "../../flows/online.ts";
import { writeFakeModel } from "../../testing/mod.ts";
import {
  placeGpus,
  SamplerConfig,
  samplerGroup,
  TrainerConfig,
  trainerGroup,
  ValueModelConfig,
} from "../../workers/mod.ts";
import { valueTrainer } from "../../workers/mod.ts";
import { execute, onlineConfig, rowsOf, stores } from "./fixtures.ts";

const MACHINE = { env: {}, devices: ["nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5"] };

/** It has a value model, and scores what a reference says. */
const ALGORITHM = { name: "ppo", kl_coef: 0.1 };

/** What the workers of a run receive, as text; where it lies is left out. */
async function received(overrides: Record<string, unknown>): Promise<string> {
  const { store, artifacts, dir, model } = await stores();
  await writeFakeModel(`${dir}/other`, 0.25);
  const given = JSON.parse(JSON.stringify(overrides).replaceAll(OTHER, `${dir}/other`)) as Record<string, object>;
  const config = onlineConfig(model, {
    ...{ rounds: 2, algorithm: ALGORITHM, trainer: {}, ...given },
    model: { path: model, ...given.model },
  });
  const rows = rowsOf(16);
  const { trainer, critic, samplers } = await execute(online, config, {
    ...{ store, artifacts, dir, rows: { train: rows } },
    nonFiniteMax: config.trainer.non_finite_max,
  });
  const value = valueTrainer(config.trainer, config.value_model);
  const places = placeGpus({ trainer: config.trainer, critic: value, sampler: config.sampler }, MACHINE);
  const options = { seed: config.seed };
  const python = (own: string | null) => own ?? "managed";
  const specs = [
    trainerGroup(config.trainer, { ...options, python: python(config.trainer.python), gpus: places.trainer }),
    trainerGroup(value, {
      ...{ ...options, python: python(value.python), gpus: places.critic },
      ...{ group: "critic", head: "value" },
    }),
    ...places.samplers.map((gpus, replica) =>
      samplerGroup(config.sampler, { ...options, python: python(config.sampler.python), replica, gpus })
    ),
  ];
  const calls = [trainer, critic, ...samplers].map((one) =>
    one.calls.map(({ op, args, key }) => JSON.stringify([key, op, args])).toSorted()
  );
  return JSON.stringify({ specs, calls }).replaceAll(dir, "DIR");
}

/** Stands for another model's directory. */
const OTHER = "other model's directory";

/** Other values to try, in this order, where a type alone suggests none. */
const OTHERS = [true, 3, 0.5, OTHER, [3], ["###"], [0.5, 0.6], { rank: 2 }, { x: 1 }, "linear", "nf4"];

function candidates(value: unknown): unknown[] {
  if (typeof value === "boolean") return [!value];
  if (typeof value === "number") return [value + 1, value / 2, value * 2, ...OTHERS];
  return OTHERS;
}

/** A value of the schema that is not `value`. */
function otherThan(schema: z.ZodType, value: unknown): unknown {
  const own = schema instanceof z.ZodDefault ? schema.unwrap() as z.ZodType : schema;
  const bare = own instanceof z.ZodNullable ? own.unwrap() as z.ZodType : own;
  const named = bare instanceof z.ZodEnum ? bare.options.filter((option) => option !== value).toReversed() : [];
  return [...named, ...candidates(value)].find((one) => {
    const read = schema.safeParse(one);
    return read.success && JSON.stringify(read.data) !== JSON.stringify(value);
  });
}

type Leaf = { path: string[]; schema: z.ZodType; value: unknown };

/** The settings of a block, those of blocks within it too. */
function leaves(schema: z.ZodObject, value: Record<string, unknown>, before: string[] = []): Leaf[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const of = field as z.ZodType;
    const path = [...before, name];
    const inner = of instanceof z.ZodDefault || of instanceof z.ZodPrefault ? of.unwrap() : of;
    if (inner instanceof z.ZodObject) return leaves(inner, value[name] as Record<string, unknown>, path);
    return [{ path, schema: of, value: value[name] }];
  });
}

const nested = (path: string[], value: unknown): Record<string, unknown> =>
  path.reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as Record<string, unknown>;

const BLOCKS: [string, z.ZodObject, Record<string, unknown>][] = [
  ["trainer", TrainerConfig, {}],
  ["sampler", SamplerConfig, {}],
  ["value_model", ValueModelConfig, {}],
  ["model", ModelConfig, { path: OTHER }],
];

Deno.test("the same configuration is received alike, whichever directory it lies in", async () => {
  strictEqual(await received({}), await received({}));
});

for (const [block, schema, usual] of BLOCKS) {
  Deno.test(`every setting of ${block}, changed alone, reaches a worker`, async () => {
    const plain = await received({});
    const silent: string[] = [];
    for (const { path, schema: field, value } of leaves(schema, schema.parse(usual))) {
      const name = [block, ...path].join(".");
      const other = otherThan(field, value);
      ok(other !== undefined, `no other value is known for ${name}: add one to OTHERS`);
      const changed = await received(nested([block, ...path], other));
      if (changed === plain) silent.push(name);
    }
    deepStrictEqual(silent, []);
  });
}

Deno.test("a setting that reaches no worker would be found", async () => {
  const plain = await received({});
  strictEqual(await received({ recovery: { allow_replan: false } }), plain, "the engine alone reads it");
  notStrictEqual(await received({ seed: 4 }), plain);
});
