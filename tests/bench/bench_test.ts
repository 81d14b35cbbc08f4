import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ensureTrl } from "../environments.ts";
import { POSTGRES_MISSING } from "../postgres.ts";
import { idleShare, median, numberFlags } from "../../bench/quickstart_run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** `deno task bench ARGS`, without the task runner. */
async function bench(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number; lines: string[]; errors: string }> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "bench/main.ts", ...args],
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, lines: text.decode(stdout).trim().split("\n"), errors: text.decode(stderr) };
}

const FIELDS: Record<string, string[]> = {
  payloads: ["text_mb_per_s", "numbers_mb_per_s", "rows_mb_per_s", "peak_mb"],
  engine: [
    "serial_steps_per_s",
    "serial_step_p50_ms",
    "serial_step_p99_ms",
    "stage_overhead_ms",
    "replay_steps",
    "replay_ms",
    "quickstart_engine_share",
    "quickstart_engine_ms",
    "quickstart_round_ms",
    ...(POSTGRES_MISSING
      ? []
      : ["postgres_vs_dbos_serial", "postgres_vs_raw", "postgres_vs_dbos_concurrent"]),
  ],
  quickstart: [
    "wall_s",
    "boot_s",
    "warmup_s",
    "rounds_s",
    "evaluation_s",
    "rounds",
    "round_ms",
    "tokens_per_s",
    "reward_first",
    "reward_last",
    "peer_rounds_s",
    "peer_round_ms",
    "peer_tokens_per_s",
  ],
};

const ROUNDS = ["--rounds", "3", "--warmup", "2"];
/** The smallest measurement of each. */
const FEW: Record<string, string[]> = {
  engine: [...ROUNDS, "--repeats", "1", "--steps", "50"],
  payloads: ["--mb", "1"],
  quickstart: ROUNDS,
};

for (const [name, fields] of Object.entries(FIELDS)) {
  Deno.test(`bench ${name} --json ends with one JSON object of its numbers`, async () => {
    const { code, lines, errors } = await bench([name, "--json", ...FEW[name]!]);
    strictEqual(code, 0, errors);
    const measured = JSON.parse(lines.at(-1)!) as Record<string, unknown>;
    for (const field of fields) {
      ok(Number.isFinite(measured[field]), `${field} is ${measured[field]}`);
    }
    if (name === "engine") {
      const share = measured.quickstart_engine_share as number;
      ok(share > 0 && share < 1, `a share of ${share}`);
    }
    if (name === "quickstart") {
      const part = (field: string) => measured[`${field}_s`] as number;
      const parts = part("boot") + part("warmup") + part("rounds") + part("evaluation");
      ok(Math.abs(parts - part("wall")) < 0.01, `the parts add up to ${parts} of ${part("wall")}`);
      strictEqual(measured.rounds, 3);
    }
  });
}

Deno.test("bench grpo --json has both times and their ratio, on equally many tokens", async () => {
  const sizes = [
    "--steps",
    "5",
    "--repeats",
    "1",
    "--prompts",
    "2",
    "--samples",
    "2",
    "--tokens",
    "4",
    "--threads",
    "1",
  ];
  const { code, lines, errors } = await bench(["grpo", "--json", ...sizes], {
    HOLDFAST_TEST_TRL_PYTHON: await ensureTrl(),
  });
  strictEqual(code, 0, errors);
  const measured = JSON.parse(lines.at(-1)!) as Record<string, number>;
  for (
    const field of [
      "step_s",
      "trl_step_s",
      "publish_ms",
      "load_ms",
      "generate_ms",
      "train_ms",
      "engine_ms",
    ]
  ) {
    ok(measured[field]! > 0, `${field} is ${measured[field]}`);
  }
  // All three are rounded to thousandths, and a step of this size takes some hundredths of a
  // second.
  const half = 0.0005;
  const least = (measured.step_s! - half) / (measured.trl_step_s! + half) - half;
  const most = (measured.step_s! + half) / (measured.trl_step_s! - half) + half;
  ok(
    least <= measured.ratio! && measured.ratio! <= most,
    `${measured.ratio} is not between ${least} and ${most}`,
  );
  strictEqual(measured.tokens_per_step, 16);
  const { settings } = measured as unknown as {
    settings: { prompts: number; trl: { gradient_checkpointing: boolean } };
  };
  deepStrictEqual([settings.prompts, settings.trl.gradient_checkpointing], [2, false]);
});

Deno.test("bench: a name or a flag that there is not is told with those there are", async () => {
  const unknown = await bench(["no_such"]);
  strictEqual(unknown.code, 2);
  for (const name of Object.keys(FIELDS)) ok(unknown.errors.includes(name), unknown.errors);
  deepStrictEqual(numberFlags(["--rounds", "3"], { rounds: 20, warmup: 30 }), {
    rounds: 3,
    warmup: 30,
  });
  for (const args of [["--round", "3"], ["--rounds", "x"], ["--rounds"], ["3"]]) {
    throws(() => numberFlags(args, { rounds: 20 }), /there are --rounds 20/);
  }
});

Deno.test("idleShare() is the part that no interval covers, however they overlap", () => {
  const whole = { from_ms: 10, to_ms: 20 };
  strictEqual(idleShare(whole, []), 1);
  strictEqual(idleShare(whole, [{ from_ms: 0, to_ms: 30 }]), 0);
  const overlapping = [{ from_ms: 14, to_ms: 16 }, { from_ms: 5, to_ms: 12 }, {
    from_ms: 15,
    to_ms: 18,
  }];
  strictEqual(idleShare(whole, overlapping), 0.4);
  strictEqual(idleShare(whole, [{ from_ms: 11, to_ms: 19 }, { from_ms: 12, to_ms: 13 }]), 0.2);
});

Deno.test("median() of odd and even counts", () => {
  deepStrictEqual([median([3, 1, 2]), median([4, 1, 2, 3]), median([])], [2, 2.5, NaN]);
});

Deno.test("bench data --json has seconds and memory of both sides at each size", async () => {
  const sizes = ["--small", "10", "--middle", "20", "--large", "30", "--reads", "8"];
  const { code, lines, errors } = await bench(["data", "--json", ...sizes], {
    HOLDFAST_TEST_TRL_PYTHON: await ensureTrl(),
  });
  strictEqual(code, 0, errors);
  const measured = JSON.parse(lines.at(-1)!) as Record<string, number>;
  deepStrictEqual([measured.small_rows, measured.middle_rows, measured.large_rows], [10, 20, 30]);
  for (const size of ["small", "middle", "large"]) {
    const others = ["csv_first", "csv_again", "parquet_first", "parquet_again"];
    for (const side of ["first", "again", "peer", ...others]) {
      for (const number of ["open_s", "peak_mib"]) {
        ok(measured[`${size}_${side}_${number}`]! > 0, `${size} ${side} ${number}`);
      }
    }
  }
});
