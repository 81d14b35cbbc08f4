import { deepStrictEqual } from "node:assert/strict";
import { jsonLines } from "../../../data/formats/json_lines.ts";
import { isUnpacked } from "../../../data/sources/unpacked_file.ts";

Deno.test("jsonLines are read where they are; compressed ones are unpacked", () => {
  const at = (compression: "gzip" | null) =>
    isUnpacked({ path: "x", format: jsonLines, compression });
  deepStrictEqual([at(null), at("gzip")], [false, true]);
});
