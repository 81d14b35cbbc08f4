import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { configJsonSchema, configSchemaText } from "../../configs/mod.ts";
import { ROOM, validate } from "./shipped.ts";

Deno.test("holdfast.schema.json is fresh", () => {
  strictEqual(
    Deno.readTextFileSync(`${ROOM}/holdfast.schema.json`),
    configSchemaText(),
    "run deno task schema",
  );
});

Deno.test("the schema accepts every short form", () => {
  const online = {
    flow: "online",
    rounds: 1,
    prompts_per_round: 1,
    samples_per_prompt: 2,
    model: { path: "m" },
    algorithm: "grpo",
  };
  const python = { name: "python", source: "my.py", settings: { clip: 0.1 } };
  for (
    const algorithm of ["grpo", "my.py", { name: "my.py", clip: 0.1 }, python, {
      ...python,
      clip: 0.2,
    }]
  ) {
    const block = { ...online, algorithm, reward: "gsm8k", data: { train: "a.jsonl" } };
    ok(validate(block), JSON.stringify([algorithm, validate.errors]));
  }
  for (
    const reward of ["gsm8k", "my.py:f", { name: "my.py:f", weight: 2 }, [
      { name: "length" },
      "my.py:f",
    ]]
  ) {
    for (const train of ["a.jsonl", ["a.jsonl"], { path: "a.jsonl" }, [{ path: "a.jsonl" }]]) {
      ok(
        validate({ ...online, reward, data: { train } }),
        JSON.stringify([reward, train, validate.errors]),
      );
    }
  }
});

Deno.test("every field of the schema has a description", () => {
  const bare: string[] = [];
  const schema = configJsonSchema();
  const definitions = schema.$defs as Record<string, { description?: string }>;
  const names = new Set<string>();
  const visit = (node: unknown, path: string) => {
    if (node === null || typeof node !== "object") return;
    const { properties = {}, ...rest } = node as {
      properties?: Record<string, { description?: string; $ref?: string }>;
    };
    for (const [name, field] of Object.entries(properties)) {
      const referred = field.$ref?.replace("#/$defs/", "");
      if (referred) names.add(referred);
      const { description } = referred ? definitions[referred]! : field;
      if (!description) bare.push(`${path}.${name}`);
      visit(field, `${path}.${name}`);
    }
    for (const [key, part] of Object.entries(rest)) {
      if (typeof part === "object") visit(part, `${path}/${key}`);
    }
  };
  visit(schema, "");
  deepStrictEqual(bare, []);
  ok(names.size > 0, "nothing is said once");
});
