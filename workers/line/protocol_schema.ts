import { z } from "zod";
import { LIMITS } from "./limits.ts";
import { AgentMessage, EngineMessage, PROTOCOL_VERSION } from "./protocol.ts";

/** Where the Python side reads the result of `protocolJsonSchema`. */
export const PROTOCOL_SCHEMA_URL = new URL(
  "../python/holdfast_worker/protocol.schema.json",
  import.meta.url,
);

/**
 * The protocol as JSON Schema (draft 2020-12), so that both sides check every frame against one
 * declaration. `AgentMessage` describes what an agent may send (fields with a default may be
 * omitted), `EngineMessage` what it receives.
 */
export function protocolJsonSchema(): Record<string, unknown> {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    description: `Protocol ${PROTOCOL_VERSION}.`,
    version: PROTOCOL_VERSION,
    limits: LIMITS,
    $defs: {
      AgentMessage: z.toJSONSchema(AgentMessage, { io: "input" }),
      EngineMessage: z.toJSONSchema(EngineMessage, { io: "output" }),
    },
  };
}

/** The file's exact text; a test compares it with what is committed. */
export function protocolSchemaText(): string {
  return JSON.stringify(protocolJsonSchema(), null, 2) + "\n";
}

if (import.meta.main) await Deno.writeTextFile(PROTOCOL_SCHEMA_URL, protocolSchemaText());
