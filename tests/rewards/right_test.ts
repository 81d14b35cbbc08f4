import { deepStrictEqual } from "node:assert/strict";
import { RewardConfig, rightness, rightOfAll } from "../../rewards/mod.ts";

Deno.test("rightness() follows the setting, then the first reward that says it", () => {
  const list = (...names: string[]) =>
    names.map((name) =>
      RewardConfig.parse(name.includes(":") ? { name: "python", source: name } : { name })
    );
  deepStrictEqual(rightness(list("length", "gsm8k", "my.py:f"), null), {
    by: "gsm8k",
    at: 1,
    says: false,
  });
  deepStrictEqual(rightness(list("length", "my.py:f", "gsm8k"), null), {
    by: "f",
    at: 0.5,
    says: true,
  });
  deepStrictEqual(rightness(list("length", "code"), null), { by: "code", at: 1, says: false });
  deepStrictEqual(rightness(list("length"), null), { by: null, at: 1, says: false });
  deepStrictEqual(rightness(list("length", "gsm8k"), 0.9), { by: "length", at: 0.9, says: false });
});

Deno.test("rightOfAll() fills a missing `right` from the score, and no more", () => {
  const parts: Record<string, number>[] = [{ f: 0.9, "f/right": 0, "f/steps": 3, g: 1 }, {
    f: 0.5,
    g: 0,
  }, {
    f: 0.4,
    g: 1,
  }];
  deepStrictEqual(rightOfAll(parts), [
    { f: 0.9, "f/right": 0, "f/steps": 3, g: 1 },
    { f: 0.5, g: 0, "f/right": 1 },
    { f: 0.4, g: 1, "f/right": 0 },
  ]);
  deepStrictEqual(rightOfAll([{ f: 1 }, { f: 0 }]), [{ f: 1 }, { f: 0 }]);
});
