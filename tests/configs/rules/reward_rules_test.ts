import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { REWARD_RULES } from "../../../configs/rules/reward_rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";
import { RewardConfig } from "../../../rewards/mod.ts";

type Entry = { label: string; when?: string; weight?: number };
const issues = (entries: Entry[]) =>
  REWARD_RULES.flatMap((rule) =>
    rule({
      flow: "online",
      reward: entries.map((entry) => RewardConfig.parse({ name: "length", ...entry })),
    } as Blocks)
  );
const chain = (...labels: string[]): Entry[] =>
  labels.map((label, i) => ({ label, ...(i > 0 && { when: labels[i - 1] }) }));

Deno.test("rewards have different labels; every repetition is named", () => {
  const message = "a second reward called 'a'; give it a different label";
  deepStrictEqual(issues([{ label: "a" }, { label: "b" }, { label: "a" }, { label: "a" }]), [
    { path: ["reward", 2], message },
    { path: ["reward", 3], message },
  ]);
});

Deno.test("one weight that is not 0 is enough", () => {
  deepStrictEqual(issues([{ label: "a", weight: 0 }, { label: "b", weight: -1 }]), []);
  deepStrictEqual(issues([{ label: "a", weight: 0 }]), [{
    path: ["reward"],
    message: "every weight is 0, so every reward is 0; change at least one weight",
  }]);
  deepStrictEqual(issues([]), [], "supervised flows have none");
});

Deno.test("a condition may name any reward of the list, also one that follows", () => {
  deepStrictEqual(issues(chain("a", "b", "c")), []);
  deepStrictEqual(issues(chain("a", "b", "c").reverse()), []);
});

Deno.test("a condition that leads into a cycle without being of it is not at fault", () => {
  const cycle = [{ label: "a", when: "b" }, { label: "b", when: "a" }];
  deepStrictEqual(issues([...cycle, { label: "c", when: "a" }]), [
    {
      path: ["reward", 0, "when"],
      message: "'b' waits for 'a', which is this one; let one of them be paid always",
    },
    {
      path: ["reward", 1, "when"],
      message: "'a' waits for 'b', which is this one; let one of them be paid always",
    },
  ]);
});

Deno.test("conditions are refused exactly where a reward waits for itself", () => {
  const LABELS = ["a", "b", "c", "d", "e"];
  const whens = fc.array(fc.option(fc.constantFrom(...LABELS), { nil: undefined }), {
    minLength: 5,
    maxLength: 5,
  });
  fc.assert(fc.property(whens, (when) => {
    const entries = LABELS.map((label, i) => ({ label, when: when[i] }));
    const next = new Map(entries.map(({ label, when }) => [label, when]));
    const after = (label: string, steps: number): string | undefined =>
      steps === 0 ? label : next.get(label) && after(next.get(label)!, steps - 1);
    const cyclic = LABELS.flatMap((label, i) =>
      LABELS.some((_, steps) => after(label, steps + 1) === label) ? [i] : []
    );
    deepStrictEqual(issues(entries).map(({ path }) => path[1]), cyclic);
  }));
});

Deno.test("an algorithm that reads each reward by itself refuses what changes the sum", () => {
  const reward = [RewardConfig.parse({ name: "length", clip: [0, 1], normalise: {} })];
  const reward_shaping = { token_cost: 0.1, clip: [0, 1] };
  const paths = (name: string) =>
    REWARD_RULES.flatMap((rule) =>
      rule({ flow: "online", reward, reward_shaping, algorithm: { name } } as unknown as Blocks)
    ).map(({ path }) => path.join("."));
  deepStrictEqual(paths("grpo"), []);
  deepStrictEqual(paths("gdpo"), [
    "reward.0.clip",
    "reward.0.normalise",
    "reward_shaping.token_cost",
    "reward_shaping.clip",
  ]);
});
