import { deepStrictEqual, throws } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { choiceOf, settingsOf } from "../../cli/algorithm_choice.ts";

Deno.test("choiceOf() has the settings of a new run", () => {
  for (const [name, { config }] of Object.entries(ALGORITHMS)) {
    deepStrictEqual(choiceOf(name, []), { name, ...config.parse({}) });
  }
});

Deno.test("choiceOf() keeps what is written over what the profile sets", () => {
  const { name, ...settings } = choiceOf("grpo", ["profile=trl", "importance=none"]);
  const { std_epsilon, importance } = settings as Record<string, unknown>;
  deepStrictEqual({ name, std_epsilon, importance }, {
    name: "grpo",
    std_epsilon: 1e-4,
    importance: "none",
  });
});

Deno.test("choiceOf() says in the verb's words what it cannot use", () => {
  throws(() => choiceOf("gspp", [], "try"), /^InvalidInputError: Cannot try 'gspp' because/);
  throws(() => choiceOf("my.py", []), /Cannot show the expression of 'my.py' because it is in Py/);
  throws(
    () => choiceOf("grpo", ["kl_coef=x"]),
    /Cannot show 'grpo' with these settings:\n {2}kl_coef: /,
  );
});

Deno.test("settingsOf() reads overrides with and without the block's name", () => {
  deepStrictEqual(settingsOf(["clip=0.3", "algorithm.kl_coef=0.1"]), { clip: 0.3, kl_coef: 0.1 });
  throws(() => settingsOf(["clip"]), /PATH=VALUE/);
});
