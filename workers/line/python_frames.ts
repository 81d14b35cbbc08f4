import { z } from "zod";
import { Arguments, Output } from "./payload.ts";
import {
  AgentMessage,
  BlobRef,
  EngineMessage,
  FailureCause,
  FailureReport,
  GroupPart,
  GroupState,
  GroupStateName,
  HeldGroup,
  HeldTask,
  PROTOCOL_VERSION,
  RankState,
  RankStateName,
  Rendezvous,
  TaskVerdict,
} from "./protocol.ts";
import { pascal, struct } from "./python_types.ts";

/** Where Python reads what `pythonFramesText` makes. */
export const PYTHON_FRAMES_URL = new URL(
  "../python/holdfast_worker/wire/frames.py",
  import.meta.url,
);

/** Sets of words, and objects inside of frames. */
const PARTS = {
  RankStateName,
  GroupStateName,
  FailureCause,
  RankState,
  GroupState,
  HeldGroup,
  HeldTask,
  FailureReport,
  Output,
  BlobRef,
  TaskVerdict,
  Rendezvous,
  GroupPart,
};
const SPELLED = { parts: { ...PARTS, Arguments }, limited };

/** Limits that many fields have, by their spelling. */
const LIMITS: Record<string, string> = {
  Id: "Annotated[str, Meta(min_length=1, max_length=200)]",
  Natural: "Annotated[int, Meta(ge=0)]",
  Positive: "Annotated[int, Meta(gt=0)]",
};

/** How msgspec calls a limit of JSON Schema. */
const MSGSPEC = {
  minimum: "ge",
  exclusiveMinimum: "gt",
  maximum: "le",
  minLength: "min_length",
  maxLength: "max_length",
  minItems: "min_length",
  maxItems: "max_length",
};

const HEAD = `"""The frames between the engine's hub and a host's agent.

Generated from \`workers/line/protocol.ts\` by \`deno task schema\`.
The line adds \`seq\` to what an agent sends reliably.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.received import OneOf, Received
from holdfast_worker.wire.types import Arguments

PROTOCOL_VERSION = ${PROTOCOL_VERSION}
`;

/**
 * The exact text of the Python module with a class per message of the protocol; a test compares it
 * with what is committed.
 */
export function pythonFramesText(): string {
  const limits = Object.entries(LIMITS).map(([name, text]) => `${name} = ${text}\n`);
  const words = Object.entries(PARTS).flatMap(([name, part]) => {
    if (!(part instanceof z.ZodEnum)) return [];
    const options = part.options.map((one) => `    ${JSON.stringify(one)},\n`);
    return [`${name} = Literal[\n${options.join("")}]\n`];
  });
  const objects = Object.entries(PARTS).flatMap(([name, part]) =>
    part instanceof z.ZodEnum ? [] : [struct(name, part, SPELLED)]
  );
  const name = (side: string, { shape }: { shape: { type: z.ZodLiteral } }) =>
    pascal(`${side}_${shape.type.value}`);
  const engine = EngineMessage.options.map((one) =>
    struct(name("engine", one), one, { ...SPELLED, base: "Frame" })
  );
  const agent = AgentMessage.options.map((one) => {
    const { seq, ...fields } = { seq: undefined, ...one.shape };
    const base = seq ? "ReliableFrame" : "DroppableFrame";
    return struct(name("agent", one), z.strictObject(fields), { ...SPELLED, base });
  });
  const union = EngineMessage.options.map((one) => name("engine", one));
  const all = `EngineFrame = (\n    ${union.join("\n    | ")}\n)\n`;
  const head = `${HEAD}${limits.join("")}${words.join("")}`;
  return `${[head, ...objects, ...engine, ...agent].join("\n\n")}\n\n${all}`;
}

/** With the smallest and largest number, length or count that the declaration allows. */
function limited(schema: z.ZodType, spelled: string): string {
  if (![z.ZodNumber, z.ZodString, z.ZodArray].some((kind) => schema instanceof kind)) {
    return spelled;
  }
  const declared = z.toJSONSchema(schema);
  const limits = Object.entries(MSGSPEC).flatMap(([name, argument]) => {
    const limit = declared[name] as number | undefined;
    const isLimited = limit !== undefined && Math.abs(limit) !== Number.MAX_SAFE_INTEGER;
    return isLimited ? [`${argument}=${limit}`] : [];
  });
  if (limits.length === 0) return spelled;
  const text = `Annotated[${spelled}, Meta(${limits.join(", ")})]`;
  return Object.keys(LIMITS).find((name) => LIMITS[name] === text) ?? text;
}
