/**
 * The shipped quickstart, as a newcomer runs it, once its environment exists. Goal: 60 s on two
 * cores. Peer, in the same run: `peers/plain_grpo.py`, the same model, task and sizes without
 * durability in one process.
 */
import { SqliteStore } from "../engine/mod.ts";
import { digitsTables, type Row, type RowTable } from "../data/mod.ts";
import {
  commandOutput,
  CONFIG,
  mean,
  median,
  numberFlags,
  type QuickstartConfig,
  quickstartConfig,
} from "./quickstart_run.ts";
import { quickstartPython, ROOT, rounded, withBenchHome } from "./quickstart_run.ts";

type Measured = Record<string, number | null>;
/** Rounds at either end whose mean reward is shown. */
const ENDS = 5;
/** The `tiny_qwen` recipe of the trainer's `create_model.py`. */
const TINY_QWEN = {
  hidden_size: 128,
  intermediate_size: 256,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  max_position_embeddings: 512,
  attention_dropout: 0,
  tie_word_embeddings: true,
};

/** `args`: `--rounds N --warmup N` instead of the shipped sizes. */
export async function benchQuickstart(args: readonly string[]): Promise<Measured> {
  const shipped = await quickstartConfig([]);
  const sizes = numberFlags(args, { rounds: shipped.online.rounds, warmup: shipped.warmup.rounds });
  const overrides = [
    ...(sizes.rounds === shipped.online.rounds ? [] : [`online.rounds=${sizes.rounds}`]),
    ...(sizes.warmup === shipped.warmup.rounds ? [] : [`warmup.rounds=${sizes.warmup}`]),
  ];
  const python = await quickstartPython();
  return await withBenchHome(async (dir) => {
    const measured = await holdfastRun(dir, overrides);
    return {
      ...measured,
      ...await peerRun(dir, { python, config: await quickstartConfig(overrides) }),
    };
  });
}

/** The command line in a separate process; its journal has the durations. */
async function holdfastRun(dir: string, overrides: readonly string[]): Promise<Measured> {
  const begun_ms = Date.now();
  const args = [
    "run",
    "-A",
    "--quiet",
    "cli/main.ts",
    "run",
    CONFIG,
    "--home",
    dir,
    "--id",
    "bench",
    ...overrides,
  ];
  await commandOutput(Deno.execPath(), args);
  const ended_ms = Date.now();
  const store = new SqliteStore(`${dir}/holdfast.db`);
  try {
    const rows = await store.read("bench");
    const at = (kind: string, key: string) =>
      rows.find((row) => row.kind === kind && row.key === key)?.at_ms ?? NaN;
    const closed = rows.filter(({ kind, key }) => kind === "round" && key.startsWith("round/"));
    const marks = {
      boot: at("result", "create_model"),
      warmup: at("result", "prepare_policy"),
      rounds: closed.at(-1)?.at_ms ?? NaN,
    };
    const tokens = rows.filter(({ kind, key }) =>
      kind === "note/generated" && key.startsWith("round/")
    )
      .reduce((sum, { value }) => sum + (JSON.parse(value) as { tokens: number }).tokens, 0);
    const gaps = closed.slice(1).map(({ at_ms }, i) => at_ms - closed[i]!.at_ms);
    return {
      wall_s: seconds(ended_ms - begun_ms),
      boot_s: seconds(marks.boot - begun_ms),
      warmup_s: seconds(marks.warmup - marks.boot),
      rounds_s: seconds(marks.rounds - marks.warmup),
      evaluation_s: seconds(ended_ms - marks.rounds),
      rounds: closed.length,
      round_ms: rounded(median(gaps)),
      tokens_per_s: rounded(tokens / ((marks.rounds - marks.warmup) / 1000)),
      ...ends(await roundRewards(dir), ""),
    };
  } finally {
    await store.close();
  }
}

async function roundRewards(dir: string): Promise<number[]> {
  const lines = (await Deno.readTextFile(`${dir}/runs/bench/metrics.jsonl`)).trim().split("\n");
  const metrics = lines.map((line) =>
    (JSON.parse(line) as { metrics: Record<string, number> }).metrics
  );
  return metrics.flatMap((one) => one["reward/mean"] ?? []);
}

type PeerWork = { python: string; config: QuickstartConfig };
type PeerAnswer = {
  warmup_s: number;
  rounds_s: number;
  round_ms: number;
  tokens_per_s: number;
  rewards: number[];
};

async function peerRun(dir: string, { python, config }: PeerWork): Promise<Measured> {
  const { warmup, online, task, evaluate, seed, sampler, trainer } = config;
  const { train } = digitsTables({ ...task, seed, eval_problems: evaluate.problems });
  const work = {
    seed: config.model.seed,
    threads: trainer.threads,
    model: TINY_QWEN,
    warmup: { rounds: warmup.rounds, rows: warmup.rows_per_round, optimizer: warmup.optimizer },
    online: {
      rounds: online.rounds,
      prompts: online.prompts_per_round,
      samples_per_prompt: online.samples_per_prompt,
      tokens_max: sampler.tokens_max,
      optimizer: online.optimizer,
    },
    warmup_rows: await firstRows(train, warmup.rounds * warmup.rows_per_round),
    online_rows: await firstRows(train, online.rounds * online.prompts_per_round),
  };
  const file = `${dir}/peer.json`;
  await Deno.writeTextFile(file, JSON.stringify(work));
  const begun = performance.now();
  const text = await commandOutput(python, [`${ROOT}bench/peers/plain_grpo.py`, file]);
  const wall_ms = performance.now() - begun;
  const answer = JSON.parse(text.trim().split("\n").at(-1)!) as PeerAnswer;
  return {
    peer_wall_s: seconds(wall_ms),
    peer_warmup_s: rounded(answer.warmup_s),
    peer_rounds_s: rounded(answer.rounds_s),
    peer_round_ms: rounded(answer.round_ms),
    peer_tokens_per_s: rounded(answer.tokens_per_s),
    ...ends(answer.rewards, "peer_"),
  };
}

async function firstRows(
  table: RowTable,
  count: number,
): Promise<Pick<Row, "prompt" | "answer">[]> {
  const rows = await table.rows(Array.from({ length: count }, (_, place) => place % table.size));
  return rows.map(({ prompt, answer }) => ({ prompt, answer }));
}

function ends(rewards: readonly number[], prefix: string): Measured {
  return {
    [`${prefix}reward_first`]: rounded(mean(rewards.slice(0, ENDS))),
    [`${prefix}reward_last`]: rounded(mean(rewards.slice(-ENDS))),
  };
}

function seconds(ms: number): number | null {
  return rounded(ms / 1000);
}
