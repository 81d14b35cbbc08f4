import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { declaredFacts, inside, setting } from "../../data/mod.ts";

const limit = z.number().register(setting, { unit: "s", resume: "stages" });

Deno.test("declaredFacts() sees what was said before a description, a default or a null, and what is said later counts", () => {
  const facts = { unit: "s", resume: "stages" };
  deepStrictEqual(declaredFacts(limit.describe("D")), facts);
  deepStrictEqual(declaredFacts(limit.nullable().default(2).describe("D")), facts);
  const later = limit.optional().register(setting, { resume: "refused" });
  deepStrictEqual(declaredFacts(later), { ...facts, resume: "refused" });
  deepStrictEqual(declaredFacts(z.number()), {});
});

Deno.test("inside() hands on a block's facts, but not its unit", () => {
  deepStrictEqual(inside(declaredFacts(limit), z.number()), { resume: "stages" });
  deepStrictEqual(inside({ numerics: true, fork: "free" }, limit), {
    numerics: true,
    fork: "free" as const,
    unit: "s",
    resume: "stages" as const,
  });
});
