import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { RewardConfig } from "../../../rewards/mod.ts";
import { keptBy } from "../../../rewards/entries/kept_by.ts";

const of = (entry: object) => keptBy(RewardConfig.parse(entry));
const JUDGE = { name: "judge", url: "http://x/v1", model: "m", template: "{completion}" };
const REMOTE = { name: "remote", url: "http://x" };
const MINE = { name: "python", source: "my.py:f" };

Deno.test("results of functions in Python are kept by their code", () => {
  for (const entry of [MINE, { name: "math" }, { name: "code" }]) {
    deepStrictEqual(of(entry), { kept: { code: null } });
  }
});

Deno.test("a judge's results are kept by what its score depends on", () => {
  const code = (more: object = {}) => of({ ...JUDGE, ...more }).kept!.code!;
  strictEqual(code().length, 64);
  const same = { timeout_ms: 7, requests_max: 1, key_env: "KEY", weight: 3, label: "x" };
  strictEqual(code(same), code());
  const others = [{ model: "n" }, { template: "{completion}!" }, { verdicts: { a: 1 } }];
  strictEqual(new Set([code(), ...others.map(code)]).size, 4);
});

Deno.test("what is not deterministic, or costs nothing, is not kept", () => {
  deepStrictEqual(of({ ...MINE, deterministic: false }), {});
  deepStrictEqual(of({ ...JUDGE, deterministic: false }), {});
  deepStrictEqual(of(REMOTE), {}, "a server says nothing about itself");
  strictEqual(of({ ...REMOTE, deterministic: true }).kept!.code!.length, 64);
  deepStrictEqual(of({ name: "exact_match", deterministic: true }), {});
});
