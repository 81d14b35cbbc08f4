/**
 * Whether real tasks are learned: for each seed, the two recipes of a folder of `examples`, a
 * supervised one and then GRPO from its model. The runs are kept in `.holdfast/bench/tasks`, so a
 * benchmark that was stopped resumes them.
 */
import { Home } from "../runs/mod.ts";
import { writeTask } from "./tasks_docs.ts";
import { type LearnedTask, learnedTask } from "./tasks_run.ts";
import { ROOT } from "./quickstart_run.ts";

/** Folders of `examples` with `sft.yaml` and `grpo.yaml`, and what a seed sets beside `seed`. */
const TASKS: Record<string, { seeded: readonly string[] }> = {
  reasoning_gym: { seeded: ["model.seed"] },
  gsm8k: { seeded: [] },
};
const HOME = `${ROOT}.holdfast/bench/tasks`;

type TaskOptions = { tasks: string[]; seeds: number[]; write: boolean };

/** `args`: `--tasks reasoning_gym,gsm8k --seeds 1,2,3`; `--write` puts the curves into the docs. */
export async function benchTasks(args: readonly string[]): Promise<Record<string, unknown>> {
  const { tasks, seeds, write } = taskOptions(args);
  const results: Record<string, unknown> = {};
  for (const task of tasks) {
    const bySeed: Record<string, LearnedTask> = {};
    for (const seed of seeds) {
      bySeed[seed] = await learnTask(task, seed);
      console.error(`${task} seed ${seed}: ${JSON.stringify(ends(bySeed[seed]))}`);
    }
    results[task] = Object.fromEntries(seeds.map((seed) => [seed, ends(bySeed[seed]!)]));
    if (write) await writeTask(task, bySeed);
  }
  return results;
}

/** @throws {RangeError} At an unknown flag or task. */
export function taskOptions(args: readonly string[]): TaskOptions {
  const rest = args.filter((arg) => arg !== "--write");
  const found: TaskOptions = {
    tasks: Object.keys(TASKS),
    seeds: [1, 2, 3],
    write: rest.length < args.length,
  };
  for (let i = 0; i < rest.length; i += 2) {
    const values = (rest[i + 1] ?? "").split(",");
    if (rest[i] === "--tasks" && values.every((name) => Object.hasOwn(TASKS, name))) {
      found.tasks = values;
    } else if (rest[i] === "--seeds" && values.every((value) => /^\d+$/.test(value))) {
      found.seeds = [...new Set(values.map(Number))];
    } else {
      throw new RangeError(
        `Cannot read '${rest.slice(i, i + 2).join(" ")}': there are --seeds 1,2,3, --write, and ` +
          `--tasks with some of ${Object.keys(TASKS).join(",")}`,
      );
    }
  }
  return found;
}

async function learnTask(task: string, seed: number): Promise<LearnedTask> {
  const [taught, learned] = [`${task}_sft_${seed}`, `${task}_grpo_${seed}`];
  const recipe = (name: string) => `${ROOT}examples/${task}/${name}.yaml`;
  const seeded = TASKS[task]!.seeded.map((setting) => `${setting}=${seed}`);
  await finish(taught, [recipe("sft"), `seed=${seed}`, ...seeded]);
  const model = `model.path=${HOME}/runs/${taught}/final`;
  await finish(learned, [recipe("grpo"), `seed=${seed}`, model]);
  const metrics = (id: string) => Deno.readTextFile(`${HOME}/runs/${id}/metrics.jsonl`);
  return learnedTask({ taught: await metrics(taught), learned: await metrics(learned) });
}

/** Runs a recipe under an id to its end; one that was started before is resumed. */
async function finish(id: string, [recipe, ...overrides]: string[]): Promise<void> {
  const status = await recordedStatus(id);
  if (status === "done") return;
  const command = status === null ? ["run", recipe!, "--id", id, ...overrides] : ["resume", id];
  const args = ["run", "-A", "--quiet", `${ROOT}cli/main.ts`, ...command, "--home", HOME];
  const { success } = await new Deno.Command(Deno.execPath(), { args, stdin: "null" }).spawn()
    .status;
  if (!success) throw new Error(`Cannot measure because 'rl ${command.join(" ")}' failed`);
}

/** null: there is no such run. */
async function recordedStatus(id: string): Promise<string | null> {
  const home = Home.open(HOME);
  try {
    return (await home.store.head(id))?.status ?? null;
  } finally {
    await home.close();
  }
}

/** Each evaluation's accuracy before and after GRPO. */
function ends({ evaluations }: LearnedTask): Record<string, string> {
  return Object.fromEntries(
    Object.entries(evaluations).map((
      [name, curve],
    ) => [name, `${curve[0]!.right.toFixed(3)} to ${curve.at(-1)!.right.toFixed(3)}`]),
  );
}
