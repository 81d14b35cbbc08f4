import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  AgentMessage,
  EngineMessage,
  PROTOCOL_SCHEMA_URL,
  protocolJsonSchema,
  protocolSchemaText,
} from "../../../workers/mod.ts";

Deno.test("protocol.schema.json is current: deno run -A workers/line/protocol_schema.ts", async () => {
  strictEqual(await Deno.readTextFile(PROTOCOL_SCHEMA_URL), protocolSchemaText());
});

Deno.test("protocolJsonSchema() has one branch for every message of both sides", () => {
  type Branch = { properties: { type: { const: string } } };
  const defs = protocolJsonSchema().$defs as Record<string, { oneOf: Branch[] }>;
  const types = (side: string) => defs[side]!.oneOf.map(({ properties }) => properties.type.const);
  deepStrictEqual(types("AgentMessage"), AgentMessage.options.map(({ shape }) => shape.type.value));
  deepStrictEqual(
    types("EngineMessage"),
    EngineMessage.options.map(({ shape }) => shape.type.value),
  );
});
