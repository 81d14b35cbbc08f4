import { LIMITS } from "./limits.ts";

/** Where Python reads the result of `pythonLimitsText`. */
export const PYTHON_LIMITS_URL = new URL("../python/holdfast_worker/limits.py", import.meta.url);

const HEAD = `"""Size limits for both ends of the connection.

Generated from \`workers/line/limits.ts\` by \`deno task schema\`.
Larger data fails where it is created: a frame that the engine refuses would close the connection
and be sent again on the next one.
"""

`;

/** The exact text of the Python module; a test compares it with what is committed. */
export function pythonLimitsText(): string {
  const lines = Object.entries(LIMITS).map(([name, value]) => `${name.toUpperCase()} = ${value}\n`);
  return HEAD + lines.join("");
}
