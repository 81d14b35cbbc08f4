/**
 * Whether every algorithm learns: its shipped configuration on the quickstart's task, several
 * seeds, and for the online ones one number of samples for all. Criterion: the last five rounds'
 * mean is 0.2 above that of the first five, in every seed: of the reward, of the share of pairs
 * told apart, or of a token's probability. Finished runs stay in `.holdfast/bench/learning` and do
 * not run again while their configuration is the same.
 */
import { ALGORITHMS, ONLINE_ALGORITHMS } from "../algs/mod.ts";
import { sha256Hex } from "../engine/mod.ts";
import { type Curves, seedResult, writeCurves, writeTable } from "./learning_docs.ts";
import { type CurvePoint, learned, learningCurve } from "./learning_run.ts";
import { ROOT } from "./quickstart_run.ts";

/** Samples of each online run: 120 rounds of 32 prompts, 8 for each. */
const BUDGET = 30_720;
export const GAIN_MIN = 0.2;
const KEPT = `${ROOT}.holdfast/bench/learning`;

type LearningOptions = { seeds: number[]; algorithms: string[]; budget: number; write: boolean };

/**
 * `args`: `--seeds 1,2,3 --algorithms grpo,ppo --budget SAMPLES`; `--write` puts curves into the
 * docs.
 */
export async function benchLearning(args: readonly string[]): Promise<Record<string, unknown>> {
  const { seeds, algorithms, budget, write } = learningOptions(args);
  const results: Record<string, unknown> = {};
  for (const algorithm of algorithms) {
    const curves: Curves = {};
    const spent = algorithm in ONLINE_ALGORITHMS ? budget : null;
    for (const seed of seeds) {
      curves[seed] = await keptCurve(algorithm, { seed, budget: spent });
      const { gain, seconds } = seedResult(curves[seed]!);
      console.error(`${algorithm} seed ${seed}: gain ${gain} in ${seconds} s`);
    }
    const each = Object.entries(curves).map(([seed, curve]) => [seed, seedResult(curve)] as const);
    const gain_min = Math.min(...each.map(([, { gain }]) => gain));
    results[algorithm] = {
      seeds: Object.fromEntries(each),
      gain_min,
      learns: gain_min >= GAIN_MIN,
    };
    if (write) {
      await writeCurves(algorithm, { curves, budget: spent, label: learned(algorithm).label });
    }
  }
  if (write) await writeTable();
  const learn = Object.values(results).every((one) => (one as { learns: boolean }).learns);
  return { budget_samples: budget, gain_wanted: GAIN_MIN, all_learn: learn, algorithms: results };
}

/** @throws {RangeError} At an unknown flag or algorithm. */
export function learningOptions(args: readonly string[]): LearningOptions {
  const known = Object.keys(ALGORITHMS);
  const found: LearningOptions = {
    seeds: [1, 2, 3],
    algorithms: known,
    budget: BUDGET,
    write: args.includes("--write"),
  };
  const rest = args.filter((arg) => arg !== "--write");
  for (let i = 0; i < rest.length; i += 2) {
    const values = (rest[i + 1] ?? "").split(",");
    const numbers = values.map(Number);
    const whole = numbers.every((number) => Number.isInteger(number) && number >= 0);
    if (rest[i] === "--seeds" && whole) found.seeds = numbers;
    else if (rest[i] === "--budget" && whole && numbers.length === 1 && numbers[0]! > 0) {
      found.budget = numbers[0]!;
    } else if (rest[i] === "--algorithms" && values.every((name) => known.includes(name))) {
      found.algorithms = values;
    } else {
      throw new RangeError(
        `Cannot read '${
          rest.slice(i, i + 2).join(" ")
        }': there are --seeds 1,2,3, --budget ${BUDGET}, --write, and ` +
          `--algorithms with some of ${known.join(",")}`,
      );
    }
  }
  return found;
}

/** The curve, from a run that was done before if its configuration and budget were the same. */
async function keptCurve(
  algorithm: string,
  one: { seed: number; budget: number | null },
): Promise<CurvePoint[]> {
  const config = await Deno.readTextFile(learned(algorithm).config);
  const name = sha256Hex(JSON.stringify([config, one])).slice(0, 16);
  const path = `${KEPT}/${algorithm}-${one.seed}-${name}.json`;
  const kept = await Deno.readTextFile(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (kept !== null) return JSON.parse(kept) as CurvePoint[];
  const curve = await learningCurve(learned(algorithm), one);
  await Deno.mkdir(KEPT, { recursive: true });
  await Deno.writeTextFile(`${path}.tmp`, JSON.stringify(curve));
  await Deno.rename(`${path}.tmp`, path);
  return curve;
}
