/**
 * `deno task bench NAME [--json]`: runs one benchmark; with --json its last line is one JSON
 * object.
 */
import { benchData } from "./data.ts";
import { benchEngine } from "./engine.ts";
import { benchGrpo } from "./grpo.ts";
import { benchLearning } from "./learning.ts";
import { benchLogits } from "./logits.ts";
import { benchOptimizers } from "./optimizers.ts";
import { benchPacking } from "./packing.ts";
import { benchPayloads } from "./payloads.ts";
import { benchQuickstart } from "./quickstart.ts";
import { benchRecovery } from "./recovery.ts";
import { benchTasks } from "./tasks.ts";

/** What a benchmark measured; times in milliseconds unless the name says otherwise. */
type Measured = Record<string, unknown>;
type Benchmark = { about: string; run(args: readonly string[]): Promise<Measured> };

/** One line for each benchmark. */
const BENCHMARKS: Record<string, Benchmark> = {
  data: {
    about: "seconds and memory of opening rows, beside Hugging Face datasets",
    run: benchData,
  },
  engine: {
    about: "durable steps per second, replay time, the engine's share of a round",
    run: benchEngine,
  },
  grpo: { about: "seconds of a GRPO step, beside TRL's GRPOTrainer", run: benchGrpo },
  learning: {
    about: "whether every algorithm learns, by its shipped configuration",
    run: benchLearning,
  },
  logits: { about: "memory of a step's logits in chunks, beside all at once", run: benchLogits },
  optimizers: { about: "state and time of each optimizer's step", run: benchOptimizers },
  packing: { about: "supervised steps on packed rows, beside padded ones", run: benchPacking },
  payloads: {
    about: "MB/s and memory of a large value between two stages",
    run: benchPayloads,
  },
  quickstart: {
    about: "the shipped quickstart, beside a plain PyTorch script",
    run: benchQuickstart,
  },
  recovery: {
    about: "seconds from each failure to the next useful work, and what was done again",
    run: benchRecovery,
  },
  tasks: {
    about: "whether real tasks are learned, supervised and then by GRPO",
    run: benchTasks,
  },
};

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args.filter((arg) => arg !== "--json");
  const benchmark = name === undefined ? undefined : BENCHMARKS[name];
  if (!benchmark) {
    const lines = Object.entries(BENCHMARKS).map(([known, { about }]) => `  ${known}  ${about}`);
    console.error(
      `${name === undefined ? "Name a benchmark" : `Cannot run '${name}'`}: there are\n${
        lines.join("\n")
      }`,
    );
    return 2;
  }
  const measured = await benchmark.run(rest);
  if (args.includes("--json")) console.log(JSON.stringify(measured));
  else {for (const [field, value] of Object.entries(measured)) {
      console.log(`${field.padEnd(32)} ${shown(value)}`);
    }}
  return 0;
}

function shown(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

if (import.meta.main) Deno.exit(await main(Deno.args));
