import { z } from "zod";
import { AgentMessage, EngineMessage, FRAME_BYTES_MAX, PROTOCOL_VERSION } from "./protocol.ts";

/** Where the Python side reads what `protocolJsonSchema` makes. */
export const PROTOCOL_SCHEMA_URL = new URL("./python/holdfast_worker/protocol.schema.json", import.meta.url);

/**
 * The protocol as JSON Schema (draft 2020-12), so that both sides check every frame against one declaration.
 * `agent_message` describes what an agent may send (fields with a default may be left out), `engine_message` what it gets.
 */
export function protocolJsonSchema(): Record<string, unknown> {
  return {
    protocol: PROTOCOL_VERSION,
    frame_bytes_max: FRAME_BYTES_MAX,
    agent_message: z.toJSONSchema(AgentMessage, { io: "input" }),
    engine_message: z.toJSONSchema(EngineMessage, { io: "output" }),
  };
}

/** The file's exact text; a test compares it with what is committed. */
export function protocolSchemaText(): string {
  return JSON.stringify(protocolJsonSchema(), null, 2) + "\n";
}

if (import.meta.main) await Deno.writeTextFile(PROTOCOL_SCHEMA_URL, protocolSchemaText());
