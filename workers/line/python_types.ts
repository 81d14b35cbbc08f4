import { z } from "zod";
import { type AnyRole, NotResident, type Operations } from "../roles/role.ts";
import { ROLES } from "../roles/table.ts";

/** Where Python reads the result of `pythonTypesTexts`. */
export const PYTHON_TYPES_URLS = {
  types: new URL("../python/holdfast_worker/wire/types.py", import.meta.url),
  answers: new URL("../python/holdfast_worker/wire/answers.py", import.meta.url),
};

/** `start_group` is `StartGroup`. */
export const pascal = (text: string) =>
  text.split("_").map((part) => part[0]!.toUpperCase() + part.slice(1)).join("");

/** `train` of the trainer is `TrainerTrain`, its specification `TrainerSpec`. */
function wholesOf({ name, spec, operations }: AnyRole): [string, z.ZodObject][] {
  const args = Object.entries(operations as Operations).map((
    [op, { args }],
  ): [string, z.ZodObject] => [
    pascal(`${name}_${op}`),
    args,
  ]);
  return [[`${pascal(name)}Spec`, spec], ...args];
}

const HEAD =
  `"""What the engine sends: specs of groups, arguments of operations, artifacts that these name.

Generated from \`workers/\` by \`deno task schema\`.
They are whole: no field has a default. Missing, unknown and wrongly typed fields are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from holdfast_worker.json_value import JsonValue
from holdfast_worker.wire.wire import Whole
`;

const ANSWERS_HEAD = `"""What operations answer; the engine checks every answer.

Generated from \`workers/\` by \`deno task schema\`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict
`;

/** The trainer's answer to `train` is a `TrainerTrainAnswer`, which Python writes. */
function answersOf({ name, operations }: AnyRole): [string, z.ZodObject][] {
  return Object.entries(operations as Operations).map(([op, { output }]) => {
    const done = output instanceof z.ZodUnion
      ? output.options.find((one) => !isOf(one as z.ZodType, NotResident))
      : output;
    return [pascal(`${name}_${op}_answer`), done as z.ZodObject];
  });
}

/**
 * The exact texts of both Python modules, for these roles; a test compares them with what is
 * committed.
 */
export function pythonTypesTexts(
  roles: readonly AnyRole[] = ROLES,
): { types: string; answers: string } {
  const parts: Parts = Object.assign({ NotResident }, ...roles.map((role) => role.parts));
  const wholes = roles.flatMap(wholesOf).map(([name, schema]) => dataclass(name, schema, parts));
  const answers = roles.flatMap(answersOf).map(([name, schema]) => {
    const part = Object.keys(parts).find((one) => isOf(schema, parts[one]!));
    return part === undefined ? typedDict(name, schema, parts) : `${name} = ${part}\n`;
  });
  const objects = new Map(
    Object.entries(parts).map((
      [name, schema],
    ) => [name, typedDict(name, schema as z.ZodObject, parts)]),
  );
  const reads = roles.flatMap((role) =>
    Object.entries(role.reads).map(([name, schema]) =>
      `${name} = ${pythonType(schema, { where: name, parts })}\n`
    )
  );
  const sent = namedIn([...wholes, ...reads], objects);
  const refusals = roles.some(refuses) ? ["NotResident"] : [];
  const answered = namedIn([...answers, ...refusals], objects);
  const own = [...answered].filter((name) => !sent.has(name)).map((name) => objects.get(name)!);
  const shared = [...sent].filter((name) => [...own, ...answers].some((text) => names(text, name)));
  return {
    types: [
      `${HEAD}\n${tables(roles)}`,
      ...[...sent].map((name) => objects.get(name)!),
      ...wholes,
      ...reads,
    ]
      .join("\n\n"),
    answers: [ANSWERS_HEAD + imports(shared.toSorted()), ...own, ...answers].join("\n\n"),
  };
}

/** Whether an operation of the role names a version, which a worker may lack. */
const refuses = ({ operations }: AnyRole): boolean =>
  Object.values(operations as Operations).some(({ output }) =>
    output instanceof z.ZodUnion &&
    output.options.some((one) => isOf(one as z.ZodType, NotResident))
  );

const names = (text: string, name: string) => new RegExp(`\\b${name}\\b`).test(text);

/** The objects that these texts name, directly or through others, in the order of `objects`. */
function namedIn(texts: string[], objects: Map<string, string>): Set<string> {
  const found = new Map<string, string>();
  for (let before = -1; before < found.size;) {
    before = found.size;
    const all = [...texts, ...found.values()];
    for (const [name, text] of objects) {
      if (all.some((one) => names(one, name))) found.set(name, text);
    }
  }
  return new Set([...objects.keys()].filter((name) => found.has(name)));
}

function imports(names: string[]): string {
  return names.length === 0
    ? ""
    : `\nfrom holdfast_worker.wire.types import (\n${
      names.map((name) => `    ${name},\n`).join("")
    })\n`;
}

/** What Python knows about the table itself. */
function tables(roles: readonly AnyRole[]): string {
  const names = roles.map(({ name }) => JSON.stringify(name)).join(", ");
  const phases = roles.flatMap(({ name, operations }) =>
    Object.entries(operations as Operations).flatMap(([op, { phase }]) =>
      phase
        ? [`    (${JSON.stringify(name)}, ${JSON.stringify(op)}): ${JSON.stringify(phase)},\n`]
        : []
    )
  );
  return `ROLES = (${names}${roles.length === 1 ? "," : ""})\nPHASES = {\n${phases.join("")}}\n`;
}

/** Objects inside arguments and specs: typed dictionaries, as received. */
type Parts = Record<string, z.ZodType>;

/** A class whose values are the objects themselves, as they come off the line. */
export function typedDict(name: string, schema: z.ZodObject, parts: Parts): string {
  const fields = Object.entries(schema.shape).map(([field, of]) => {
    const type = pythonType(of as z.ZodType, { where: `${name}.${field}`, parts });
    return `    ${field}: ${of instanceof z.ZodOptional ? `NotRequired[${type}]` : type}\n`;
  });
  return `class ${name}(TypedDict):\n${fields.join("")}`;
}

function dataclass(name: string, schema: z.ZodObject, parts: Parts): string {
  const fields = Object.entries(schema.shape).map(([field, of]) =>
    `    ${nameOf(field)}: ${pythonType(of as z.ZodType, { where: `${name}.${field}`, parts })}\n`
  );
  return `@dataclass(frozen=True)\nclass ${name}(Whole):\n${fields.join("") || "    pass\n"}`;
}

/** `from` is a keyword in Python. */
const nameOf = (field: string) => field === "from" ? "from_" : field;

/** How Python spells a schema. @throws {TypeError} For an object that `parts` does not name. */
export function pythonType(schema: z.ZodType, place: { where: string; parts: Parts }): string {
  const { where, parts } = place;
  const named = Object.entries(parts).find(([, part]) => isOf(schema, part));
  if (named) return named[0];
  if (
    schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional
  ) {
    return pythonType(schema.unwrap() as z.ZodType, place);
  }
  if (schema instanceof z.ZodNullable) {
    return `${pythonType(schema.unwrap() as z.ZodType, place)} | None`;
  }
  if (schema instanceof z.ZodString) return "str";
  if (schema instanceof z.ZodBoolean) return "bool";
  if (schema instanceof z.ZodNumber) return schema.isInt ? "int" : "float";
  if (schema instanceof z.ZodEnum) {
    return `Literal[${schema.options.map((one) => JSON.stringify(one)).join(", ")}]`;
  }
  if (schema instanceof z.ZodLiteral) {
    return `Literal[${[...schema.values].map((one) => JSON.stringify(one)).join(", ")}]`;
  }
  if (schema instanceof z.ZodArray) {
    return `list[${pythonType(schema.element as z.ZodType, place)}]`;
  }
  if (schema instanceof z.ZodTuple) {
    const items = schema.def.items.map((item) => pythonType(item as z.ZodType, place));
    return `list[${[...new Set(items)].join(" | ")}]`; // Tuples come off the line as lists.
  }
  if (schema instanceof z.ZodRecord) {
    return `dict[str, ${pythonType(schema.valueType as z.ZodType, place)}]`;
  }
  if (schema instanceof z.ZodUnion) {
    const spelled = [...new Set(optionsOf(schema).map((option) => pythonType(option, place)))];
    return spelled.toSorted((a, b) => Number(a === "None") - Number(b === "None")).join(" | ");
  }
  if (schema instanceof z.ZodNull) return "None";
  if (schema instanceof z.ZodUnknown) return "JsonValue";
  if (schema instanceof z.ZodObject) {
    throw new TypeError(
      `Cannot write ${where} in Python: give its object a name in the parts of its role`,
    );
  }
  throw new TypeError(`Cannot write ${where} in Python: its schema is of type ${schema.def.type}`);
}

/** Including those of unions within it. */
function optionsOf(union: z.ZodUnion): z.ZodType[] {
  return union.options.flatMap((one) =>
    one instanceof z.ZodUnion ? optionsOf(one) : [one as z.ZodType]
  );
}

/** A description or a registration copies a schema; the copy remembers its original. */
function isOf(schema: z.ZodType, part: z.ZodType): boolean {
  for (let one: z.core.$ZodType | undefined = schema; one; one = one._zod.parent) {
    if (one === part) return true;
  }
  return false;
}
