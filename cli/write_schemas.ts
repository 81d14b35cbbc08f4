/** Writes the generated JSON Schemas: `deno task schema`. Tests say when one is stale. */
import { configSchemaText } from "../configs/mod.ts";
import { PROTOCOL_SCHEMA_URL, protocolSchemaText } from "../workers/mod.ts";

await Deno.writeTextFile(new URL("../configs/holdfast.schema.json", import.meta.url), configSchemaText());
await Deno.writeTextFile(PROTOCOL_SCHEMA_URL, protocolSchemaText());
