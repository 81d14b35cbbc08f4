import { deepStrictEqual, throws } from "node:assert/strict";
import { parseRewards } from "../../configs/mod.ts";

const parsed = (text: string) =>
  parseRewards(text, "/here").map(({ weight: _, ...entry }) => entry as Record<string, unknown>);

Deno.test("parseRewards() reads a name, a function, an entry and a list", () => {
  deepStrictEqual(parsed("math"), [{ name: "math", timeout_ms: 10_000 }]);
  deepStrictEqual(parsed("my.py:f"), [{
    name: "python",
    source: "/here/my.py:f",
    timeout_ms: 10_000,
  }]);
  const length = { name: "length", unit: "characters", max: 8, prefer: "short" };
  deepStrictEqual(parsed("{ name: length, unit: characters, max: 8 }"), [length]);
  deepStrictEqual(parsed("[{ name: length, unit: characters, max: 8, when: math }, math]"), [
    { ...length, when: "math" },
    { name: "math", timeout_ms: 10_000 },
  ]);
  deepStrictEqual(
    parsed("{ name: /there/my.py:f, on: { source: a } }")[0]!.source,
    "/there/my.py:f",
  );
});

Deno.test("parseRewards() says in one sentence what is wrong", () => {
  const refuses = (text: string, why: RegExp) => throws(() => parseRewards(text, "/here"), why);
  refuses(
    "mth",
    /Cannot use reward 'mth' because there is no reward 'mth' \(did you mean math\?\)\. Fix: /,
  );
  refuses("{ name: length", /because it is not YAML: /);
  refuses("{ name: length, max: few }", /because entry 1\.\w+: .*Fix: give entries as in a conf/);
  refuses("[]", /because entry 1: /);
  refuses("[math, math]", /a second reward called 'math'/);
  refuses("{ name: math, when: gsm8k }", /there is no reward 'gsm8k' in the list/);
});
