/**
 * Seconds of one GRPO step, beside TRL's own trainer on the same model, prompts and group size:
 * `peers/trl_grpo.py`. Ours has its journal, its publications and its worker processes; both run in
 * turn, each several times. Goal: half of TRL's.
 */
import { digitsTables } from "../data/mod.ts";
import { OnlineConfig } from "../configs/mod.ts";
import {
  commandOutput,
  idleShare,
  mean,
  median,
  numberFlags,
  type Operation,
} from "./quickstart_run.ts";
import {
  quickstartPython,
  ROOT,
  rounded,
  timedRun,
  trlPython,
  withBenchHome,
} from "./quickstart_run.ts";

/**
 * What both sides receive. `steps`: of one run; the first two and the last are not counted.
 * `threads`: CPU threads that a side may use at a time. The peer gives all of them to each
 * operation; ours does so in training, and generates with a sampler on each.
 */
const SIZES = { steps: 23, repeats: 5, prompts: 8, samples: 8, tokens: 32, threads: 2 };
type Sizes = typeof SIZES;
const SEED = 1;
const LR = 1e-4;
/**
 * Characters at which a completion scores 0: they are of 32 tokens, some of which are more than one
 * character.
 */
const LENGTH_MAX = 200;
const UNCOUNTED = { first: 2, last: 1 };

type Work = Sizes & {
  packing: boolean;
  model: string;
  rows: string[];
  lr: number;
  seed: number;
  length_max: number;
};
type Side = { step_s: number[]; tokens: number };
type PeerAnswer = Omit<Side, "tokens"> & {
  tokens: number[];
  settings: unknown;
  packages: Record<string, string>;
};

/**
 * `args`: `--steps N --repeats N --prompts N --samples N --tokens N --threads N`; `--padded`: our
 * side trains on padded rows, too; and `--model DIR` instead of the quickstart's.
 */
export async function benchGrpo(args: readonly string[]): Promise<Record<string, unknown>> {
  const packing = !args.includes("--padded");
  const rest = args.filter((arg) => arg !== "--padded");
  const at = rest.indexOf("--model");
  const source = at < 0 ? "tiny_qwen" : rest[at + 1]!;
  const sizes = numberFlags(at < 0 ? rest : rest.toSpliced(at, 2), SIZES);
  const [python, trl] = [await quickstartPython(), await trlPython()];
  return await withBenchHome(async (dir) => {
    const model = `${dir}/model`;
    const env = { PYTHONPATH: `${ROOT}workers/python` };
    await commandOutput(python, [
      `${ROOT}bench/peers/endless_model.py`,
      source,
      String(SEED),
      model,
    ], env);
    const work: Work = {
      ...sizes,
      packing,
      model,
      rows: await prompts(sizes),
      lr: LR,
      seed: SEED,
      length_max: LENGTH_MAX,
    };
    const [runs, peer]: [(Side & { operations: Operation[]; engine_ms: number })[], PeerAnswer[]] =
      [
        [],
        [],
      ];
    for (let repeat = 0; repeat < sizes.repeats; repeat++) {
      runs.push(await holdfastRun(`${dir}/${repeat}`, work));
      peer.push(await peerRun(`${dir}/peer.json`, { python: trl, work }));
    }
    return {
      ...compared(runs, peer, work),
      settings: { ...sizes, packing, source, lr: LR, seed: SEED, trl: peer[0]!.settings },
    };
  });
}

async function prompts({ steps, prompts }: Sizes): Promise<string[]> {
  const { train } = digitsTables({ name: "sort_digits", digits: 5, seed: SEED, eval_problems: 1 });
  const rows = await train.rows(Array.from({ length: steps * prompts }, (_, place) => place));
  return rows.map(({ prompt }) => prompt as string);
}

async function holdfastRun(dir: string, work: Work) {
  await Deno.mkdir(dir);
  const train = `${dir}/train.jsonl`;
  await Deno.writeTextFile(
    train,
    work.rows.map((prompt, n) => JSON.stringify({ id: n, prompt, answer: "" })).join("\n"),
  );
  const { rounds, tokens } = await timedRun(dir, holdfastConfig(work, train));
  // The first interval ends with the second round.
  const counted = rounds.slice(UNCOUNTED.first - 1, rounds.length - UNCOUNTED.last);
  const operations = counted.flatMap((round) =>
    round.operations.filter(({ sent_ms }) => sent_ms >= round.from_ms)
  );
  const engine_ms = median(counted.map((round) => {
    const busy = round.operations.map(({ sent_ms, ended_ms }) => ({
      from_ms: sent_ms,
      to_ms: ended_ms,
    }));
    return idleShare(round, busy) * (round.to_ms - round.from_ms);
  }));
  return {
    step_s: counted.map(({ from_ms, to_ms }) => (to_ms - from_ms) / 1000),
    tokens,
    operations,
    engine_ms,
  };
}

/** What the peer's settings say, in our words. */
function holdfastConfig(work: Work, train: string) {
  const { seed, steps, prompts, samples, tokens, threads, packing, model, lr, length_max } = work;
  return OnlineConfig.parse({
    flow: "online",
    seed,
    rounds: steps,
    prompts_per_round: prompts,
    samples_per_prompt: samples,
    model: { path: model },
    data: { train: [{ path: train }] },
    algorithm: { name: "grpo" },
    reward: [{ name: "length", unit: "characters", max: length_max, prefer: "short" }],
    trainer: {
      engine: "torch",
      dtype: "float32",
      device: "cpu",
      threads,
      updates_per_batch: 1,
      micro_batch_tokens_max: 1 << 20,
      packing,
      optimizer: { lr, clip_grad_norm: 1 },
    },
    sampler: {
      engine: "huggingface",
      dtype: "float32",
      device: "cpu",
      replicas: threads,
      threads: 1,
      temperature: 1,
      tokens_max: tokens,
    },
    checkpoints: { every_rounds: steps },
  });
}

async function peerRun(
  file: string,
  { python, work }: { python: string; work: Work },
): Promise<PeerAnswer> {
  await Deno.writeTextFile(file, JSON.stringify(work));
  const text = await commandOutput(python, [`${ROOT}bench/peers/trl_grpo.py`, file], {
    HF_HUB_OFFLINE: "1",
  });
  const answer = JSON.parse(text.trim().split("\n").at(-1)!) as PeerAnswer;
  return {
    ...answer,
    step_s: answer.step_s.slice(UNCOUNTED.first - 1, answer.step_s.length - UNCOUNTED.last),
  };
}

type HoldfastRun = Awaited<ReturnType<typeof holdfastRun>>;

function compared(
  runs: HoldfastRun[],
  peer: PeerAnswer[],
  { steps, prompts, samples, tokens }: Work,
): Record<string, unknown> {
  const seconds = (sides: { step_s: number[] }[]) => sides.map(({ step_s }) => mean(step_s));
  const [ours, theirs] = [seconds(runs), seconds(peer)];
  const each = [...runs.map((run) => run.tokens / steps), ...peer.flatMap((run) => run.tokens)];
  const wanted = prompts * samples * tokens;
  const odd = each.find((count) => count !== wanted);
  if (odd !== undefined) {
    throw new Error(
      `Cannot compare as a step of one side has ${odd} tokens: both must have ${wanted}`,
    );
  }
  const took = (op: string) =>
    rounded(
      median(runs.flatMap(({ operations }) =>
        operations.filter((one) => one.op === op).map(({ sent_ms, ended_ms }) => ended_ms - sent_ms)
      )),
    );
  return {
    step_s: rounded(median(ours)),
    trl_step_s: rounded(median(theirs)),
    ratio: rounded(median(ours) / median(theirs)),
    ratio_goal: 0.5,
    tokens_per_step: wanted,
    ...Object.fromEntries(
      ["publish", "load", "generate", "train"].map((op) => [`${op}_ms`, took(op)]),
    ),
    engine_ms: rounded(median(runs.map(({ engine_ms }) => engine_ms))),
    runs_step_s: ours.map(rounded),
    trl_runs_step_s: theirs.map(rounded),
    trl_packages: peer[0]!.packages,
  };
}
