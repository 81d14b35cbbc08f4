/**
 * Whether a run learns three generated task families as one mixture with a curriculum: the recipes
 * of `examples/reasoning_gym`, supervised and then GRPO, once per seed. Its home is kept in
 * `.holdfast/bench/reasoning_gym`, so a benchmark that was stopped resumes its runs.
 */
import { curvesSvg } from "./curves_svg.ts";
import { mean, reasoningGymPython, ROOT, rounded } from "./quickstart_run.ts";

const RECIPES = `${ROOT}examples/reasoning_gym`;
const ROWS = `${ROOT}datasets/reasoning_gym`;
const HOME = `${ROOT}.holdfast/bench/reasoning_gym`;
const FAMILIES = ["chain_sum", "spell_backward", "gcd"] as const;
type Family = typeof FAMILIES[number];
const PAGE = `${ROOT}docs/runs/reasoning_gym`;
const REGION =
  /(<!-- Written by `deno task bench reasoning_gym --write`. -->\n)[^]*?(\n<!-- End. -->)/;

/** Held-out accuracy after a round, with its 95 % interval; round 0 is before the first. */
export type Accuracy = { round: number; right: number; low: number; high: number };
/** Of one seed: each family's curve, and its share of the draws of the last round. */
export type Learned = Record<Family, { curve: Accuracy[]; share: number }>;

/** `args`: `--seeds 1,2,3`; `--write` puts numbers, picture and table into the docs. */
export async function benchReasoningGym(args: readonly string[]): Promise<Record<string, unknown>> {
  const { seeds, write } = asked(args);
  await makeRows();
  await shareEnvironments();
  const bySeed: Record<string, Learned> = {};
  for (const seed of seeds) {
    const warm = `warm-${seed}`;
    const places = [`seed=${seed}`, `model.path=${HOME}/runs/${warm}/final`];
    await finish(warm, ["sft.yaml", `seed=${seed}`, `model.seed=${seed}`]);
    await finish(`learned-${seed}`, ["grpo.yaml", ...places]);
    bySeed[seed] = learnedFrom(
      await Deno.readTextFile(`${HOME}/runs/learned-${seed}/metrics.jsonl`),
    );
    console.error(`seed ${seed}: ${JSON.stringify(ends(bySeed[seed]))}`);
  }
  if (write) await writePage(bySeed);
  return {
    seeds: Object.fromEntries(Object.entries(bySeed).map(([seed, one]) => [seed, ends(one)])),
  };
}

/** @throws {RangeError} At an unknown flag. */
export function asked(args: readonly string[]): { seeds: number[]; write: boolean } {
  const rest = args.filter((arg) => arg !== "--write");
  const write = rest.length < args.length;
  if (rest.length === 0) return { seeds: [1, 2, 3], write };
  const seeds = (rest[1] ?? "").split(",").map(Number);
  const whole = seeds.every((seed) => Number.isInteger(seed) && seed >= 0);
  if (rest.length !== 2 || rest[0] !== "--seeds" || !rest[1] || !whole) {
    throw new RangeError(`Cannot read '${rest.join(" ")}': there are --seeds 1,2,3 and --write`);
  }
  return { seeds, write };
}

/** Rows for the recipes, at the place that they name. The same bytes each time. */
async function makeRows(): Promise<void> {
  const python = await reasoningGymPython();
  const args = [`${RECIPES}/make_rows.py`, ROWS];
  const { success } = await new Deno.Command(python, { args, stdin: "null" }).spawn().status;
  if (!success) throw new Error("Cannot train because make_rows.py failed");
}

/** The bench's home uses the repository's Python environments. */
async function shareEnvironments(): Promise<void> {
  await Deno.mkdir(HOME, { recursive: true });
  await Deno.symlink(`${ROOT}.holdfast/env`, `${HOME}/env`).catch((error) => {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  });
}

/** Runs a recipe under an id to its end; one that was begun before is resumed. */
async function finish(id: string, [recipe, ...overrides]: string[]): Promise<void> {
  const place = ["--home", HOME];
  const shown = await rl(["show", id, "--json", ...place], "piped");
  const status = shown.success ? JSON.parse(shown.stdout).status : null;
  if (status === "done") return;
  const command = status === null
    ? ["run", `${RECIPES}/${recipe}`, "--id", id, ...overrides, ...place]
    : ["resume", id, ...place];
  const { success } = await rl(command, "inherit");
  if (!success) throw new Error(`Cannot measure because 'rl ${command.join(" ")}' failed`);
}

async function rl(
  args: string[],
  stdout: "piped" | "inherit",
): Promise<{ success: boolean; stdout: string }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", `${ROOT}cli/main.ts`, ...args],
    stdin: "null",
    stdout,
    stderr: stdout === "piped" ? "null" : "inherit",
  }).spawn();
  if (stdout === "inherit") return { success: (await child.status).success, stdout: "" };
  const { success, stdout: said } = await child.output();
  return { success, stdout: new TextDecoder().decode(said) };
}

/** Reads the curves off a run's `metrics.jsonl`. */
export function learnedFrom(metricsFile: string): Learned {
  type Point = { round: number | null; metrics: Record<string, number> };
  const points = metricsFile.trimEnd().split("\n").map((line) => JSON.parse(line) as Point);
  const of = (family: Family) => {
    const name = `eval/${family}/avg_at_1`;
    const curve = points.filter(({ metrics }) => metrics[name] !== undefined)
      .map(({ round, metrics }) => ({
        round: round ?? 0,
        right: metrics[name]!,
        low: metrics[`${name}_low`]!,
        high: metrics[`${name}_high`]!,
      }));
    const share = points.findLast(({ metrics }) => `data/${family}/share` in metrics)
      ?.metrics[`data/${family}/share`];
    return { curve: curve.sort((a, b) => a.round - b.round), share: share! };
  };
  return Object.fromEntries(FAMILIES.map((family) => [family, of(family)])) as Learned;
}

function ends(learned: Learned): Record<string, string> {
  return Object.fromEntries(FAMILIES.map((family) => {
    const { curve } = learned[family];
    return [family, `${shown(curve[0]!)} to ${shown(curve.at(-1)!)}`];
  }));
}

const digits = (value: number) => value.toFixed(2);
const shown = ({ right, low, high }: Accuracy) =>
  `${digits(right)} (${digits(low)} to ${digits(high)})`;

/** One row for each family and seed: held-out accuracy before and after, with intervals. */
export function table(bySeed: Record<string, Learned>): string {
  const rows = FAMILIES.flatMap((family) =>
    Object.entries(bySeed).map(([seed, learned]) => {
      const { curve, share } = learned[family];
      return [`\`${family}\``, seed, shown(curve[0]!), shown(curve.at(-1)!), digits(share)];
    })
  );
  const head = ["family", "seed", "before GRPO", "after GRPO", "share of draws at the end"];
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

async function writePage(bySeed: Record<string, Learned>): Promise<void> {
  const seeds = Object.values(bySeed);
  const series = FAMILIES.map((family) => ({
    name: family,
    points: seeds[0]![family].curve.map(({ round }, i) => ({
      x: round,
      y: mean(seeds.map((learned) => learned[family].curve[i]!.right)),
    })),
  }));
  const svg = curvesSvg(series, {
    title: `held-out accuracy, mean of ${seeds.length} seeds`,
    x: "rounds of GRPO",
    y: "right",
  });
  await Deno.writeTextFile(`${PAGE}.svg`, svg);
  await Deno.writeTextFile(
    `${PAGE}.json`,
    `${JSON.stringify(bySeed, (_, v) => typeof v === "number" ? rounded(v) : v, 1)}\n`,
  );
  const page = await Deno.readTextFile(`${PAGE}.md`);
  if (!REGION.test(page)) throw new Error(`Cannot write the table because ${PAGE}.md has no place`);
  const written = page.replace(REGION, (_, begin, end) => `${begin}\n${table(bySeed)}\n${end}`);
  await Deno.writeTextFile(`${PAGE}.md`, written);
}
