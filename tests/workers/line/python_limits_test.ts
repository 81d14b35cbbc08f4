import { strictEqual } from "node:assert/strict";
import { PYTHON_LIMITS_URL, pythonLimitsText } from "../../../workers/mod.ts";

Deno.test("Python's limits are those of the engine (else: deno task schema)", async () => {
  strictEqual(await Deno.readTextFile(PYTHON_LIMITS_URL), pythonLimitsText());
});
