/** What the tests of the schema and of the shipped files read. */
import { Ajv } from "ajv";
import { configJsonSchema } from "../../configs/mod.ts";

export const ROOM = decodeURIComponent(new URL("../../configs", import.meta.url).pathname);
export const validate = new Ajv({ allErrors: true }).compile(
  configJsonSchema(),
);
