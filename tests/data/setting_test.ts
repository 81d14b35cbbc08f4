import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { inside, saidOf, setting } from "../../data/mod.ts";

const limit = z.number().register(setting, { unit: "s", resume: "stages" });

Deno.test("saidOf() sees what was said before a description, a default or a null, and what is said later counts", () => {
  const said = { unit: "s", resume: "stages" };
  deepStrictEqual(saidOf(limit.describe("D")), said);
  deepStrictEqual(saidOf(limit.nullable().default(2).describe("D")), said);
  const later = limit.optional().register(setting, { resume: "refused" });
  deepStrictEqual(saidOf(later), { ...said, resume: "refused" });
  deepStrictEqual(saidOf(z.number()), {});
});

Deno.test("inside() hands on a block's facts, but not its unit", () => {
  deepStrictEqual(inside(saidOf(limit), z.number()), { resume: "stages" });
  deepStrictEqual(inside({ numerics: true, fork: "free" }, limit), {
    numerics: true,
    fork: "free" as const,
    unit: "s",
    resume: "stages" as const,
  });
});
