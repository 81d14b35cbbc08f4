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
\`UNSET\`: a field that may be left out was.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.wire.received import OneOf, Received
`;

const ANSWERS_HEAD =
  `"""What operations answer: typed dictionaries, since the engine checks every answer.

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
  const wholes = roles.flatMap(wholesOf).map(([name, schema]) => struct(name, schema, { parts }));
  const answers = roles.flatMap(answersOf).map(([name, schema]) => {
    const part = Object.keys(parts).find((one) => isOf(schema, parts[one]!));
    return part === undefined ? typedDict(name, schema, parts) : `${name} = ${part}\n`;
  });
  const reads = roles.flatMap((role) =>
    Object.entries(role.reads).map(([name, schema]) =>
      `${name} = ${pythonType(schema, { where: name, parts })}\n`
    )
  );
  const sent = namedIn([...wholes, ...reads], written(parts, struct));
  const refusals = roles.some(refuses) ? ["NotResident"] : [];
  const answered = namedIn(
    [...answers, ...refusals],
    written(parts, (name, schema) => typedDict(name, schema as z.ZodObject, parts)),
  );
  return {
    types: [`${HEAD}\n${tables(roles)}`, ...sent, ...wholes, ...reads].join("\n\n"),
    answers: [ANSWERS_HEAD, ...answered, ...answers].join("\n\n"),
  };
}

/** The text of every part, made once it is asked for: only an answer's is a typed dictionary. */
function written(parts: Parts, write: typeof struct): Map<string, () => string> {
  return new Map(
    Object.entries(parts).map(([name, schema]) => [name, () => write(name, schema, { parts })]),
  );
}

/** Whether an operation of the role names a version, which a worker may lack. */
const refuses = ({ operations }: AnyRole): boolean =>
  Object.values(operations as Operations).some(({ output }) =>
    output instanceof z.ZodUnion &&
    output.options.some((one) => isOf(one as z.ZodType, NotResident))
  );

const names = (text: string, name: string) => new RegExp(`\\b${name}\\b`).test(text);

/** The parts that these texts name, directly or through others, in the order of `parts`. */
function namedIn(texts: string[], parts: Map<string, () => string>): string[] {
  const found = new Map<string, string>();
  for (let before = -1; before < found.size;) {
    before = found.size;
    const all = [...texts, ...found.values()];
    for (const [name, text] of parts) {
      if (!found.has(name) && all.some((one) => names(one, name))) found.set(name, text());
    }
  }
  return [...parts.keys()].flatMap((name) => found.get(name) ?? []);
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

/** Objects inside arguments, specs and answers, by the names of their classes. */
type Parts = Record<string, z.ZodType>;

/** Where a schema stands, and how its numbers are spelled. */
type Place = {
  where: string;
  parts: Parts;
  /** Of an answer, which Python writes and does not read. */
  answered?: boolean;
  /** What a message's field may be besides its type, by its spelling. */
  limited?: (schema: z.ZodType, spelled: string) => string;
};

/** An object that Python writes. */
function typedDict(name: string, schema: z.ZodObject, parts: Parts): string {
  const fields = Object.entries(schema.shape).map(([field, of]) => {
    const place = { where: `${name}.${field}`, parts, answered: true };
    const type = pythonType(of as z.ZodType, place);
    return `    ${field}: ${of instanceof z.ZodOptional ? `NotRequired[${type}]` : type}\n`;
  });
  return `class ${name}(TypedDict):\n${fields.join("")}`;
}

/**
 * A class whose instances are read from a line. `base`: of an object, whose literal field is the
 * tag that distinguishes it in a union. A union of objects without one is a class with exactly one
 * of their fields.
 */
export function struct(
  name: string,
  schema: z.ZodType,
  { base = "Received", ...options }: Omit<Place, "where"> & { base?: string },
): string {
  const written = ([field, of]: [string, unknown], may_lack: boolean) => {
    const type = pythonType(of as z.ZodType, { where: `${name}.${field}`, ...options });
    return `    ${fieldOf(field, type, may_lack || of instanceof z.ZodOptional)}\n`;
  };
  if (schema instanceof z.ZodUnion) {
    const shapes = schema.options.map((option) => (option as z.ZodObject).shape);
    const fields = Object.entries(Object.assign({}, ...shapes)).map((one) => written(one, true));
    return `class ${name}(OneOf, frozen=True, kw_only=True):\n${fields.join("")}`;
  }
  const all = Object.entries((schema as z.ZodObject).shape);
  const tag = all.find(([, of]) => of instanceof z.ZodLiteral);
  const tagged = tag
    ? `, tag_field=${JSON.stringify(tag[0])}, tag=${JSON.stringify((tag[1] as z.ZodLiteral).value)}`
    : "";
  const fields = all.filter((one) => one !== tag).map((one) => written(one, false));
  return `class ${name}(${base}, frozen=True, kw_only=True${tagged}):\n${
    fields.join("") || "    pass\n"
  }`;
}

/** `from` is a keyword in Python. */
function fieldOf(field: string, type: string, may_lack: boolean): string {
  if (field === "from") return `from_: ${type} = field(name="from")`;
  return may_lack ? `${field}: ${type} | UnsetType = UNSET` : `${field}: ${type}`;
}

/** How Python spells a schema. @throws {TypeError} For an object that `parts` does not name. */
export function pythonType(schema: z.ZodType, place: Place): string {
  const spelled = typeOf(schema, place);
  return place.limited ? place.limited(schema, spelled) : spelled;
}

function typeOf(schema: z.ZodType, place: Place): string {
  const { where, parts, answered } = place;
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
  if (schema instanceof z.ZodNumber) {
    return schema.isInt ? "int" : answered ? "float" : "Number";
  }
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
