import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { checkOverlong, overlongPenalty, overlongSettings } from "../../../algs/mod.ts";

const Settings = z.strictObject(overlongSettings).superRefine(checkOverlong);
const buffered = { overlong_length_max: 10, overlong_buffer: 4, overlong_factor: 2 };

Deno.test("overlongPenalty() rises over the buffer and is whole at the end", () => {
  deepStrictEqual(overlongPenalty([1, 6, 7, 8, 10, 12], buffered), [0, 0, -0.5, -1, -2, -2]);
  deepStrictEqual(overlongPenalty([1, 100], { ...buffered, overlong_buffer: 0 }), [0, 0]);
});

Deno.test("overlongPenalty() grows with the length, and stays within the factor", () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 2 });
  fc.assert(fc.property(lengths, fc.integer({ min: 1, max: 10 }), (length, overlong_buffer) => {
    const sorted = length.toSorted((a, b) => a - b);
    const penalty = overlongPenalty(sorted, { ...buffered, overlong_buffer });
    return penalty.every((p, i) => p <= 0 && p >= -2 && (i === 0 || p <= penalty[i - 1]!));
  }));
});

Deno.test("checkOverlong() is silent without a buffer, and with one that fits", () => {
  deepStrictEqual(Settings.parse({}), {
    overlong_buffer: 0,
    overlong_length_max: null,
    overlong_factor: 1,
  });
  deepStrictEqual(Settings.safeParse({ overlong_buffer: 4, overlong_length_max: 4 }).success, true);
});

Deno.test("checkOverlong() refuses a buffer without an end, or longer than a completion", () => {
  const messages = (changes: z.input<typeof Settings>) =>
    Settings.safeParse(changes).error?.issues.map(({ path, message }) => [path[0], message]);
  deepStrictEqual(messages({ overlong_buffer: 4 }), [[
    "overlong_buffer",
    "needs overlong_length_max, the length with the full penalty: usually " +
    "sampler.tokens_max",
  ]]);
  deepStrictEqual(messages({ overlong_buffer: 5, overlong_length_max: 4 }), [[
    "overlong_buffer",
    "must be at most overlong_length_max (4)",
  ]]);
});
