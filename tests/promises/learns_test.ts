import { ok, strictEqual } from "node:assert/strict";
import { at, rl, show, withFreshHome } from "../crash/runs.ts";

/** Half of the quickstart's rounds: the long suite `learning` has all of them, with three seeds. */
const ROUNDS = 60;

Deno.test("the shipped quickstart learns: more is right after half of its rounds than before", async () => {
  await withFreshHome(async (home) => {
    const args = ["run", "configs/quickstart.yaml", `online.rounds=${ROUNDS}`];
    const { code, output } = await rl([...args, ...at({ home, store: null }), "--id", "q"], {});
    strictEqual(code, 0, output);
    const { evaluations, ledger } = await show(home, "q");
    const right = (name: string) => evaluations.find((one) => one.name === name)!.avg_at_k;
    const [before, after] = [right("before_greedy"), right("after_greedy")];
    ok(
      after >= before + 0.1,
      `greedy accuracy on held-out problems went from ${before} to ${after}`,
    );
    strictEqual(ledger.read, ROUNDS * 32);
    strictEqual(ledger.pending, 0);
  });
});
