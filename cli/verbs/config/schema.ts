import { configJsonSchema } from "../../../configs/mod.ts";
import { printJson } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";

/** `config schema`: the JSON Schema that editors read. */
export const configSchemaVerb = defineVerb({
  name: "config schema",
  about: "print the JSON Schema that editors read",
  arguments: {},
  options: {},
  homeless: true,
  action: () => printJson(configJsonSchema()),
});
