import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { issuesOf, oneOf } from "../../../configs/problems/issue_text.ts";

const schema = z.strictObject({
  rounds: z.int().positive(),
  share: z.number().lt(1).optional(),
  name: z.string().min(1).optional(),
  list: z.array(z.string()).min(2).optional(),
  either: z.union([z.literal("all"), z.array(z.int())], { error: "must be all, or a list" })
    .optional(),
  mode: z.enum(["fast", "exact"]).optional(),
  reward: z.discriminatedUnion("name", [
    z.strictObject({ name: z.literal("length") }),
    z.strictObject({ name: z.literal("gsm8k") }),
  ]).optional(),
});
/** The messages about a value, by path. */
function messages(value: unknown): Record<string, string> {
  const { error } = schema.safeParse(value);
  const issues = issuesOf(error!, { schema, value });
  return Object.fromEntries(issues.map(({ path, message }) => [path.join("."), message]));
}

Deno.test("issuesOf() says what is expected and what was found", () => {
  deepStrictEqual(messages({}), { rounds: "missing; expected a number" });
  deepStrictEqual(messages({ rounds: "many" }), { rounds: 'expected a number, got "many"' });
  deepStrictEqual(messages({ rounds: 1, list: {} }), {
    list: "expected a list, got a block of keys",
  });
  deepStrictEqual(messages({ rounds: null }), {
    rounds: "expected a number, got nothing (null)",
  });
});

Deno.test("issuesOf() says what a union says of itself", () => {
  deepStrictEqual(messages({ rounds: 1, either: "none" }), {
    either: 'must be all, or a list, got "none"',
  });
});

Deno.test("issuesOf() says which bound is broken", () => {
  deepStrictEqual(messages({ rounds: 0, share: 1, name: "", list: ["a"] }), {
    rounds: "must be more than 0, got 0",
    share: "must be less than 1, got 1",
    name: "must not be empty",
    list: "needs at least 2 entries, got 1",
  });
});

Deno.test("issuesOf() suggests keys, options and members of unions", () => {
  deepStrictEqual(messages({ rounds: 1, mod: 1, mode: "exacd", reward: { name: "lenght" } }), {
    mod: "unknown key (did you mean mode?)",
    mode: 'expected one of fast, exact, got "exacd" (did you mean exact?)',
    "reward.name": 'expected one of length, gsm8k, got "lenght" (did you mean length?)',
  });
});

Deno.test("oneOf() shortens a long text, and names an only option alone", () => {
  deepStrictEqual(oneOf(["a"], undefined), "missing; expected a");
  deepStrictEqual(oneOf(["a"], "x".repeat(61)), `expected a, got "${"x".repeat(57)}..."`);
});
