/** Writes what is generated from the code, the JSON Schemas and the table of failures: `deno task schema`. Tests say when one is stale. */
import { configSchemaText } from "../configs/mod.ts";
import { causesPage, FAILURES_PAGE_URL, PROTOCOL_SCHEMA_URL, protocolSchemaText } from "../workers/mod.ts";

await Deno.writeTextFile(new URL("../configs/holdfast.schema.json", import.meta.url), configSchemaText());
await Deno.writeTextFile(PROTOCOL_SCHEMA_URL, protocolSchemaText());
await Deno.writeTextFile(FAILURES_PAGE_URL, causesPage(await Deno.readTextFile(FAILURES_PAGE_URL)));
