import { deepStrictEqual } from "node:assert/strict";
import { workerEnvironment } from "../../../workers/mod.ts";

/** What workers see of variables that are set for this test alone. */
function seen(variables: Record<string, string>, options = {}): string[] {
  for (const [name, value] of Object.entries(variables)) Deno.env.set(name, value);
  try {
    const env = workerEnvironment(options);
    return Object.keys(variables).filter((name) => env[name] === variables[name]);
  } finally {
    for (const name of Object.keys(variables)) Deno.env.delete(name);
  }
}

Deno.test("workerEnvironment() hides the store's address and password by their names", () => {
  const secret = { HOLDFAST_STORE: "a", DATABASE_URL: "b", PGPASSWORD: "c", PGHOST: "d" };
  deepStrictEqual(seen(secret), []);
});

Deno.test("workerEnvironment() hides a Postgres address under any name", () => {
  const addresses = { TEST_A: "postgres://u:p@h/db", TEST_B: "PostgreSQL://u:p@h/db" };
  deepStrictEqual(seen(addresses), []);
});

Deno.test("workerEnvironment() has the hub's tokens only where they are asked for", () => {
  const tokens = { HF_TOKEN: "a", HUGGING_FACE_HUB_TOKEN: "b", HUGGINGFACEHUB_API_TOKEN: "c" };
  deepStrictEqual(seen(tokens), []);
  deepStrictEqual(seen(tokens, { hub_token: true }), Object.keys(tokens));
});

Deno.test("workerEnvironment() keeps everything else as it is", () => {
  const others = { PG_TEST: "1", HOLDFAST_STORE_TEST: "2", TEST_URL: "https://postgres.example" };
  deepStrictEqual(seen(others), Object.keys(others));
});
