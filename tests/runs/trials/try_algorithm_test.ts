import { rejects, strictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { InvalidInputError } from "../../../engine/mod.ts";
import type { Home } from "../../../runs/mod.ts";
import { tryAlgorithm } from "../../../runs/trials/try_algorithm.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

async function ranHome(overrides: Record<string, unknown> = {}): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1, ...overrides });
  await executeFake(home, "a");
  return home;
}

/** It is refused before an environment is made: the home has none. */
async function refused(
  home: Home,
  { round = 1, algorithm = "grpo" }: { round?: number; algorithm?: string },
  message: string,
): Promise<void> {
  const options = {
    round,
    algorithm: AlgorithmChoice.parse({ name: algorithm }),
    model: null,
    json: true,
    onSetup: () => {
      throw new Error("an environment is made");
    },
  };
  await rejects(tryAlgorithm(home, (await home.store.head("a"))!, options), (error) => {
    strictEqual((error as Error).message, message);
    return error instanceof InvalidInputError;
  });
}

Deno.test("tryAlgorithm() names a round that the run has not recorded", async () => {
  await refused(
    await ranHome(),
    { round: 2 },
    "Cannot try a loss on round 2 of run 'a' because it has recorded no such round",
  );
});

Deno.test("tryAlgorithm() refuses a round in which nothing was trained", async () => {
  // Nobody is ever right, so no group has an advantage.
  await refused(
    await ranHome({ reward: [{ name: "exact_match" }] }),
    {},
    "Cannot try a loss on round 1 of run 'a' because that round has no training batch",
  );
});

Deno.test("tryAlgorithm() refuses credit that needs what the round did not score", async () => {
  await refused(
    await ranHome(),
    { algorithm: "ppo" },
    "Cannot assign credit with 'ppo' because it needs values: the round has reward, group, stop, " +
      "length, coef. Try it on a round of a run that scored it",
  );
});

/** The gate names an interpreter that has PyTorch. */
const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const BY_PARTS = `
def credit(round, c):
    (part,) = round.parts
    assert (part.weight * part.paid == round.reward).all()
    return {"advantage": part.paid - part.paid.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
`;

Deno.test({
  name: "tryAlgorithm() gives a file each reward by itself",
  ignore: python === "",
  fn: async () => {
    const trainer = { python, optimizer: { lr: 0.1 } };
    const home = await ranHome({ trainer });
    const source = `${home.dir}/by_parts.py`;
    await Deno.writeTextFile(source, BY_PARTS);
    const algorithm = AlgorithmChoice.parse({ name: "python", source, parts: true });
    const options = { round: 1, algorithm, model: null, json: false };
    strictEqual(await tryAlgorithm(home, (await home.store.head("a"))!, options), 0);
  },
});
