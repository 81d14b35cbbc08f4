/**
 * Histories from seeds: `deno run -A tests/simulation/run.ts --seed 17 --trace`, `--seeds 1-5000`.
 * The exit code is 1 if one of them breaks a rule; its first line says how to tell it again.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { judge } from "./engines.ts";

const SHOWN_MAX = 8;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { seed: { type: "string" }, seeds: { type: "string" }, trace: { type: "boolean" } },
  });
  const [low, high = low] = (values.seeds ?? values.seed ?? "1-1000").split("-").map(Number);
  const trace = values.trace ? (line: string) => console.log(line) : undefined;
  let broken = 0;
  for (let seed = low!; seed <= high!; seed++) {
    const wrong = await judge(seed, { trace });
    if (wrong.length > 0) broken++;
    if (wrong.length > 0) {
      console.log(
        `seed ${seed} breaks ${wrong.length} rule(s): ` +
          `deno run -A tests/simulation/run.ts --seed ${seed} --trace`,
      );
      for (const what of wrong.slice(0, SHOWN_MAX)) console.log(`  ${what}`);
    }
  }
  const { user, system } = process.cpuUsage();
  const [count, minutes] = [high! - low! + 1, (user + system) / 60_000_000];
  console.log(
    `${count} seed(s), ${broken} broken, ${Math.round(count / minutes)} per minute of one core`,
  );
  return broken > 0 ? 1 : 0;
}

Deno.exit(await main());
