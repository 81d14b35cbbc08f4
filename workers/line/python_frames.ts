import { z } from "zod";
import { ArgumentsBeside, ArgumentsInline, OutputBeside, OutputInline } from "./payload.ts";
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
  RankState,
  RankStateName,
  Rendezvous,
  TaskVerdict,
} from "./protocol.ts";
import { pascal, pythonType, typedDict } from "./python_types.ts";

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
  OutputInline,
  OutputBeside,
  BlobRef,
  TaskVerdict,
  Rendezvous,
  GroupPart,
};
const FROM_WIRE_TYPES = { ArgumentsInline, ArgumentsBeside };

const HEAD = `"""The frames between the engine's hub and a host's agent.

Generated from \`workers/line/protocol.ts\` by \`deno task schema\`.
The line adds \`seq\` to what an agent sends reliably.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from holdfast_worker.json_value import JsonValue
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.types import ArgumentsBeside, ArgumentsInline
`;

/**
 * The exact text of the Python module with a frozen dataclass per message of the protocol; a test
 * compares it with what is committed.
 */
export function pythonFramesText(): string {
  const words = Object.entries(PARTS).flatMap(([name, part]) => {
    if (!(part instanceof z.ZodEnum)) return [];
    const options = part.options.map((one) => `    ${JSON.stringify(one)},\n`);
    return [`${name} = Literal[\n${options.join("")}]\n`];
  });
  const objects = Object.entries(PARTS).flatMap(([name, part]) =>
    part instanceof z.ZodObject ? [typedDict(name, part, PARTS)] : []
  );
  const engine = EngineMessage.options.map(({ shape }) => dataclass("engine", "Frame", shape));
  const agent = AgentMessage.options.map(({ shape }) => {
    const { seq, ...fields } = { seq: undefined, ...shape };
    return dataclass("agent", seq ? "ReliableFrame" : "DroppableFrame", fields);
  });
  const union = EngineMessage.options.map(({ shape }) => `Engine${pascal(shape.type.value)}`);
  const all = `EngineFrame = (\n    ${union.join("\n    | ")}\n)\n`;
  const head = `${HEAD}\n${words.join("")}`;
  return `${[head, ...objects, ...engine, ...agent].join("\n\n")}\n\n${all}`;
}

function dataclass(
  side: string,
  base: string,
  { type, ...fields }: z.ZodRawShape & { type: z.ZodLiteral },
): string {
  const kind = String(type.value);
  const name = pascal(`${side}_${kind}`);
  const parts = { ...PARTS, ...FROM_WIRE_TYPES };
  const lines = Object.entries(fields).map(([field, of]) => {
    const spelled = pythonType(of as z.ZodType, { where: `${name}.${field}`, parts });
    return `    ${field}: ${spelled}${of instanceof z.ZodOptional ? " | None = None" : ""}\n`;
  });
  return `@dataclass(frozen=True, kw_only=True)\nclass ${name}(${base}):\n` +
    `    kind = ${JSON.stringify(kind)}\n${lines.join("")}`;
}
