import { rejects, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { checkAlgorithm } from "../../flows/mod.ts";
import { onlineConfig, scratch } from "./fixtures.ts";

/** The gate names an interpreter that has PyTorch. */
const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const dir = await scratch();
const SOURCE = `
def credit(round, c):
    return {"advantage": round.reward - round.reward.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
`;

/** An algorithm's block, of a file with this text. */
async function algorithmOf(text: string) {
  const source = `${dir}/mine.py`;
  await Deno.writeTextFile(source, text);
  return { name: "python", source };
}
const trainer = { python, optimizer: { lr: 0.1 } };
const withFile = async (text: string, overrides: Record<string, unknown> = {}) =>
  onlineConfig("/model", { algorithm: await algorithmOf(text), trainer, ...overrides });

async function refused(
  config: Parameters<typeof checkAlgorithm>[0],
  reason: RegExp,
): Promise<void> {
  await rejects(checkAlgorithm(config), (error) => {
    strictEqual(reason.test((error as Error).message), true, (error as Error).message);
    return error instanceof InvalidInputError;
  });
}

Deno.test("checkAlgorithm() makes no environment for an algorithm of the table", async () => {
  const onSetup = () => {
    throw new Error("an environment is made");
  };
  await checkAlgorithm(onlineConfig("/model"), { onSetup });
});

Deno.test({
  name: "checkAlgorithm() accepts a file that the flow can use",
  ignore: python === "",
  fn: async () => strictEqual(await checkAlgorithm(await withFile(SOURCE)), undefined),
});

Deno.test({
  name: "checkAlgorithm() refuses a file that does not run, with its own error",
  ignore: python === "",
  fn: async () =>
    await refused(await withFile(`${SOURCE}\nraise ValueError("not today")`), /not today/),
});

Deno.test({
  name: "checkAlgorithm() refuses a file that learns from what the flow does not have",
  ignore: python === "",
  fn: async () => {
    const config = SupervisedConfig.parse({
      flow: "supervised",
      seed: 3,
      rounds: 1,
      rows_per_round: 1,
      model: { path: "/model" },
      data: { train: [{ path: "train.jsonl" }] },
      algorithm: await algorithmOf(SOURCE),
      trainer,
    });
    await refused(
      config,
      /^Cannot use mine\.py because its loss reads 'advantage', which learning from completions/,
    );
  },
});
