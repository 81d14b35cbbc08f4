import { z } from "zod";
import {
  ArtifactRef,
  Chat,
  Draw,
  Message,
  Optimizer,
  RatioBounds,
  Row,
  Sampling,
  Schedule,
  Slab,
} from "../data/mod.ts";
import { RewardSpec, SamplerSpec, TrainerSpec } from "./group_specs.ts";
import { Checkpoint, FileEntry, OPERATIONS, Publication, PublicationBase, TensorEntry } from "./operations.ts";
import { Lora, Offload } from "./trainer_config.ts";

/** Where Python reads what `pythonTypesText` makes. */
export const PYTHON_TYPES_URL = new URL("./python/holdfast_worker/wire_types.py", import.meta.url);

/** Objects inside of arguments and specs: typed dictionaries, as they come off the line. */
const PARTS: Record<string, z.ZodType> = {
  ArtifactRef,
  Chat,
  RatioBounds,
  Schedule,
  Optimizer,
  Lora,
  Offload,
  FileEntry,
  TensorEntry,
  Checkpoint,
  PublicationBase,
  Publication,
  Message,
  Row,
  Draw,
  Slab,
  Sampling,
};

const SPECS: Record<string, z.ZodObject> = { TrainerSpec, SamplerSpec, RewardSpec };

/** `train` of the trainer is `TrainerTrain`. */
function argumentsOf(): Record<string, z.ZodObject> {
  const pascal = (text: string) => text.split("_").map((part) => part[0]!.toUpperCase() + part.slice(1)).join("");
  return Object.fromEntries(
    Object.entries(OPERATIONS).flatMap(([role, operations]) =>
      Object.entries(operations).map(([op, { args }]) => [pascal(`${role}_${op}`), args as z.ZodObject])
    ),
  );
}

const HEAD =
  `"""What the engine sends: specs of groups and arguments of operations. Generated from \`workers/\` by \`deno task schema\`.

They are whole: no field has a default here. Fields that are missing or unknown are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from holdfast_worker.wire import Whole
`;

/** The Python module's exact text; a test compares it with what is committed. */
export function pythonTypesText(): string {
  const parts = Object.entries(PARTS).map(([name, schema]) => typedDict(name, schema as z.ZodObject));
  const whole = Object.entries({ ...SPECS, ...argumentsOf() }).map(([name, schema]) => dataclass(name, schema));
  return [HEAD, ...parts, ...whole].join("\n\n");
}

function typedDict(name: string, schema: z.ZodObject): string {
  const fields = Object.entries(schema.shape).map(([field, of]) => {
    const type = pythonType(of as z.ZodType, `${name}.${field}`);
    return `    ${field}: ${of instanceof z.ZodOptional ? `NotRequired[${type}]` : type}\n`;
  });
  return `class ${name}(TypedDict):\n${fields.join("")}`;
}

function dataclass(name: string, schema: z.ZodObject): string {
  const fields = Object.entries(schema.shape).map(([field, of]) =>
    `    ${nameOf(field)}: ${pythonType(of as z.ZodType, `${name}.${field}`)}\n`
  );
  return `@dataclass(frozen=True)\nclass ${name}(Whole):\n${fields.join("") || "    pass\n"}`;
}

/** `from` is no name in Python. */
const nameOf = (field: string) => field === "from" ? "from_" : field;

/** How Python spells a schema. @throws {TypeError} At an object that `PARTS` does not name. */
export function pythonType(schema: z.ZodType, where: string): string {
  const named = Object.entries(PARTS).find(([, part]) => isOf(schema, part));
  if (named) return named[0];
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return pythonType(schema.unwrap() as z.ZodType, where);
  }
  if (schema instanceof z.ZodNullable) return `${pythonType(schema.unwrap() as z.ZodType, where)} | None`;
  if (schema instanceof z.ZodString) return "str";
  if (schema instanceof z.ZodBoolean) return "bool";
  if (schema instanceof z.ZodNumber) return schema.isInt ? "int" : "float";
  if (schema instanceof z.ZodEnum) return `Literal[${schema.options.map((one) => JSON.stringify(one)).join(", ")}]`;
  if (schema instanceof z.ZodLiteral) {
    return `Literal[${[...schema.values].map((one) => JSON.stringify(one)).join(", ")}]`;
  }
  if (schema instanceof z.ZodArray) return `list[${pythonType(schema.element as z.ZodType, where)}]`;
  if (schema instanceof z.ZodTuple) {
    const items = schema.def.items.map((item) => pythonType(item as z.ZodType, where));
    return `list[${[...new Set(items)].join(" | ")}]`; // Tuples come off the line as lists.
  }
  if (schema instanceof z.ZodRecord) return `dict[str, ${pythonType(schema.valueType as z.ZodType, where)}]`;
  if (schema instanceof z.ZodUnion) {
    const options = schema.options.map((option) => pythonType(option as z.ZodType, where));
    return [...new Set(options)].join(" | ");
  }
  if (schema instanceof z.ZodUnknown) return "Any";
  if (schema instanceof z.ZodObject) {
    throw new TypeError(`Cannot write ${where} in Python: give its object a name in PARTS`);
  }
  throw new TypeError(`Cannot write ${where} in Python: its schema is of type ${schema.def.type}`);
}

/**
 * A description or a registration makes a copy of a schema that remembers the one it was made of.
 */
function isOf(schema: z.ZodType, part: z.ZodType): boolean {
  for (let one: z.core.$ZodType | undefined = schema; one; one = one._zod.parent) if (one === part) return true;
  return false;
}
