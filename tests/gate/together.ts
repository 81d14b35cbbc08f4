/**
 * Runs test files in one isolate: `deno test -A tests/gate/together.ts -- FILE ...`. Deno gives
 * each file its own, and in most of ours nearly all time goes to loading the same modules again.
 * A test before each file's tests says whose they are.
 */
import { BEGINS } from "./report.ts";

const ROOT = new URL("../../", import.meta.url);

for (const file of Deno.args) {
  Deno.test(BEGINS + file, () => {});
  await import(new URL(file, ROOT).href).catch((error) =>
    Deno.test(`${file} is loaded`, () => Promise.reject(error))
  );
}
