import { match, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { PYTHON_TYPES_URLS, pythonTypesTexts, ROLES } from "../../../workers/mod.ts";
import { pythonType, struct } from "../../../workers/line/python_types.ts";

const PLACE = { where: "Here.field", parts: {} };

Deno.test("Python's types are what the declarations say now (else: deno task schema)", async () => {
  const { types, answers } = pythonTypesTexts();
  strictEqual(await Deno.readTextFile(PYTHON_TYPES_URLS.types), types);
  strictEqual(await Deno.readTextFile(PYTHON_TYPES_URLS.answers), answers);
});

Deno.test("every operation of every role has its arguments and its answer in Python", () => {
  const { types, answers } = pythonTypesTexts();
  const pascal = (name: string) =>
    name.split("_").map((part) => part[0]!.toUpperCase() + part.slice(1)).join("");
  for (const { name, operations } of ROLES) {
    match(types, new RegExp(`class ${pascal(name)}Spec\\(Received, `));
    for (const op of Object.keys(operations)) {
      match(types, new RegExp(`class ${pascal(`${name}_${op}`)}\\(Received, `));
      match(answers, new RegExp(`^(class )?${pascal(`${name}_${op}_answer`)}\\b`, "m"));
    }
  }
});

Deno.test("artifacts that operations read are unions of the role's parts", () => {
  const { types } = pythonTypesTexts();
  match(types, /^Batch = TrajectoryBatch \| SupervisedBatch \| PreferenceBatch \| UnpairedBatch$/m);
  match(
    types,
    /^class TrajectoryBatch\(.*, tag_field="kind", tag="trajectories"\):\n {4}groups: /m,
  );
});

Deno.test("pythonType() spells what JSON has, and asks for a name where an object has none", () => {
  const spelled: [z.ZodType, string][] = [
    [z.string().nullable(), "str | None"],
    [z.int().positive(), "int"],
    [z.number().default(1), "Number"],
    [z.enum(["a", "b"]), 'Literal["a", "b"]'],
    [z.record(z.string(), z.array(z.boolean())), "dict[str, list[bool]]"],
    [z.tuple([z.number(), z.number()]), "list[Number]"],
    [z.union([z.literal("all"), z.array(z.string())]), 'Literal["all"] | list[str]'],
    [z.union([z.union([z.null(), z.string()]), z.int()]), "str | int | None"],
    [z.unknown(), "JsonValue"],
  ];
  for (const [schema, text] of spelled) strictEqual(pythonType(schema, PLACE), text);
  throws(
    () => pythonType(z.strictObject({ a: z.string() }), PLACE),
    /Here\.field.*give its object a name/,
  );
  throws(() => pythonType(z.date(), PLACE), /Here\.field.*date/);
});

Deno.test("struct() has no defaults, and names what Python cannot say itself", () => {
  const schema = z.strictObject({ from: z.string(), to: z.string().optional(), at: z.number() });
  strictEqual(
    struct("Move", schema, { parts: {} }),
    "class Move(Received, frozen=True, kw_only=True):\n" +
      '    from_: str = field(name="from")\n' +
      "    to: str | UnsetType = UNSET\n" +
      "    at: Number\n",
  );
});

Deno.test("struct() of a union without a tag has one of the fields of its objects", () => {
  const schema = z.union([z.strictObject({ text: z.string() }), z.strictObject({ at: z.int() })]);
  strictEqual(
    struct("Place", schema, { parts: {} }),
    "class Place(OneOf, frozen=True, kw_only=True):\n" +
      "    text: str | UnsetType = UNSET\n" +
      "    at: int | UnsetType = UNSET\n",
  );
});
