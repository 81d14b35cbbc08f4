import { match, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { OPERATIONS, PYTHON_TYPES_URL, pythonTypesText } from "../../workers/mod.ts";
import { pythonType } from "../../workers/python_types.ts";

Deno.test("wire_types.py is what the declarations say now (else: deno task schema)", async () => {
  strictEqual(await Deno.readTextFile(PYTHON_TYPES_URL), pythonTypesText());
});

Deno.test("every operation of every role has its arguments in Python", () => {
  const text = pythonTypesText();
  const pascal = (name: string) => name.split("_").map((part) => part[0]!.toUpperCase() + part.slice(1)).join("");
  for (const [role, operations] of Object.entries(OPERATIONS)) {
    for (const op of Object.keys(operations)) match(text, new RegExp(`class ${pascal(`${role}_${op}`)}\\(Whole\\)`));
  }
});

Deno.test("pythonType() spells what JSON has, and asks for a name where an object has none", () => {
  const spelled: [z.ZodType, string][] = [
    [z.string().nullable(), "str | None"],
    [z.int().positive(), "int"],
    [z.number().default(1), "float"],
    [z.enum(["a", "b"]), 'Literal["a", "b"]'],
    [z.record(z.string(), z.array(z.boolean())), "dict[str, list[bool]]"],
    [z.tuple([z.number(), z.number()]), "list[float]"],
    [z.union([z.literal("all"), z.array(z.string())]), 'Literal["all"] | list[str]'],
    [z.unknown(), "Any"],
  ];
  for (const [schema, text] of spelled) strictEqual(pythonType(schema, "Here.field"), text);
  throws(() => pythonType(z.strictObject({ a: z.string() }), "Here.field"), /Here\.field.*give its object a name/);
  throws(() => pythonType(z.date(), "Here.field"), /Here\.field.*date/);
});
