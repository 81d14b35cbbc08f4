import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { freeBytes, InfrastructureError } from "../engine/mod.ts";
import { hasGpu } from "./gpus.ts";
import { madeOnce, type Place, placeOf } from "./made_once.ts";
import { Making, type MakingOptions } from "./making.ts";
import { checkPython, findPython } from "./python_interpreter.ts";
import { type Locked, Uv } from "./uv.ts";

/**
 * One environment per engine and per build of PyTorch, so that DeepSpeed and vLLM never have to
 * agree on versions; and one for trackers, without PyTorch.
 */
export type EnvironmentKind = `${"torch" | "deepspeed" | "vllm"}_${Build}` | "trackers";
/** @internal */
type Build = "cpu" | "cuda";

type Recipe = {
  /** Modules that a user's own environment must have for this kind. */
  modules: string[];
  /** The build of PyTorch; null: it has none. */
  build: Build | null;
  /** What is installed besides PyTorch, by the names of files in `python/requirements`. */
  requirements: string[];
  /** Environment of the installation. */
  env?: Record<string, string>;
};

const WORKER_MODULES = [
  "websockets",
  "msgpack",
  "jsonschema",
  "numpy",
  "torch",
  "transformers",
  "safetensors",
];

const recipe = (engine: "torch" | "deepspeed", build: Build): Recipe => ({
  modules: engine === "torch" ? WORKER_MODULES : [...WORKER_MODULES, "deepspeed"],
  build,
  requirements: [engine],
  env: { DS_BUILD_OPS: "0" },
});
const vllm = (build: Build): Recipe => ({
  modules: [...WORKER_MODULES, "vllm"],
  build,
  requirements: [`vllm_${build}`],
});

const RECIPES: Record<EnvironmentKind, Recipe> = {
  torch_cpu: recipe("torch", "cpu"),
  torch_cuda: recipe("torch", "cuda"),
  deepspeed_cpu: recipe("deepspeed", "cpu"),
  deepspeed_cuda: recipe("deepspeed", "cuda"),
  vllm_cpu: vllm("cpu"),
  vllm_cuda: vllm("cuda"),
  // A user's own interpreter needs only the client of the tracker that it is for.
  trackers: { modules: [], build: null, requirements: ["trackers"] },
};

type Cost = { download_mib: number; disk_mib: number };

/**
 * Download and disk size of each requirement file, measured on x86-64 Linux with Python 3.11. Files
 * that are not listed are small.
 */
const COSTS: Record<string, Cost> = {
  uv: { download_mib: 17, disk_mib: 63 },
  pytorch_cpu: { download_mib: 183, disk_mib: 695 },
  pytorch_cuda: { download_mib: 2603, disk_mib: 4514 },
  torch: { download_mib: 56, disk_mib: 408 },
  deepspeed: { download_mib: 59, disk_mib: 431 },
  vllm_cpu: { download_mib: 674, disk_mib: 2691 },
  vllm_cuda: { download_mib: 1166, disk_mib: 2691 },
  trl: { download_mib: 123, disk_mib: 684 },
  trackers: { download_mib: 86, disk_mib: 385 },
};

/** Where environments are, and what creates them. */
export type EnvironmentOptions = MakingOptions & {
  /** HOME; environments are in HOME/env, which may be a symbolic link shared by several homes. */
  home: string;
  /** The user's own interpreter: only checked, never changed. */
  own?: string | null;
  /** The Python that creates managed environments. */
  base?: string;
  /** The directory of the requirement files. */
  requirements_dir?: URL;
  /** Free bytes on a directory's disk; null if unknown. */
  freeBytes?: (dir: string) => number | null;
};

const REQUIREMENTS = new URL("./python/requirements/", import.meta.url);

/**
 * The kind of environment that an engine of a configuration needs: its processes are meant for a
 * GPU or not.
 */
export function environmentKind(
  engine: "torch" | "deepspeed" | "huggingface" | "vllm",
  gpu = hasGpu(),
): EnvironmentKind {
  return `${engine === "huggingface" ? "torch" : engine}_${gpu ? "cuda" : "cpu"}`;
}

/**
 * The interpreter of an environment: the user's own after a check, else a managed one, created on
 * first use.
 * @throws {InvalidInputError | InfrastructureError} One sentence that says what is wrong and how to
 * fix it.
 */
export async function ensureEnvironment(
  kind: EnvironmentKind,
  options: EnvironmentOptions,
): Promise<string> {
  const { modules, ...recipe } = RECIPES[kind];
  if (options.own) {
    await checkPython(options.own, modules);
    return options.own;
  }
  const { requirements_dir = REQUIREMENTS } = options;
  const requirements = recipe.requirements.map((name) => new URL(`${name}.txt`, requirements_dir));
  return await ensureMade(kind, { ...options, ...recipe, requirements });
}

/**
 * The interpreter of a managed environment for any locked requirements with PyTorch. No worker runs
 * in it.
 */
export async function ensureRequirements(
  requirements: URL,
  options: Omit<EnvironmentOptions, "own">,
): Promise<string> {
  const build = hasGpu() ? "cuda" : "cpu";
  const name = `${nameOf(requirements)}_${build}`;
  return await ensureMade(name, { ...options, build, requirements: [requirements] });
}

type Wanted = Omit<EnvironmentOptions, "own"> & Pick<Recipe, "build" | "env"> & {
  requirements: URL[];
};

async function ensureMade(kind: string, wanted: Wanted): Promise<string> {
  const place = await placeFor(kind, wanted);
  const making = new Making(place, wanted);
  return await madeOnce(place, {
    onWait: () => making.say("waiting for another process that is creating it"),
    make: () => make(place, { ...wanted, making }),
  });
}

/** Different requirements have different directories. */
async function placeFor(kind: string, wanted: Wanted): Promise<Place> {
  const files = filesOf(wanted);
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(file)));
  return placeOf(wanted.home, { name: kind, text: texts.join("\n") });
}

function pytorchFile({ requirements_dir = REQUIREMENTS }: Wanted, build: Build): URL {
  return new URL(`pytorch_${build}.txt`, requirements_dir);
}

function filesOf(wanted: Wanted): URL[] {
  const pytorch = wanted.build === null ? [] : [pytorchFile(wanted, wanted.build)];
  return [...pytorch, ...wanted.requirements];
}

async function make(
  { path }: Place,
  { making, ...wanted }: Wanted & { making: Making },
): Promise<void> {
  const base = await findPython(wanted.base);
  const began = performance.now();
  checkRoom(making, filesOf(wanted), wanted);
  const uv = await Uv.of(wanted.home, { python: base, making });
  await making.must("`python -m venv`", [base.path, "-m", "venv", "--without-pip", path]);
  const python = join(path, "bin", "python");
  const { build } = wanted;
  const pytorch = build === null
    ? []
    : [await pytorchFor(python, { ...wanted, build, making, uv })];
  const others = wanted.requirements.map((file): Locked => ({ file }));
  await uv.install(python, { requirements: [...pytorch, ...others], making, env: wanted.env });
  making.say(`ready after ${Math.round((performance.now() - began) / 1000)} s`);
}

/**
 * The build of PyTorch that is available. Looks for the CPU build in the user's package index (a
 * mirror may have it; the public one has it for macOS), then in PyTorch's own index. If neither has
 * it, uses the much larger CUDA build.
 */
async function pytorchFor(
  python: string,
  options: Wanted & { build: Build; making: Making; uv: Uv },
): Promise<Locked> {
  const { making, uv, build } = options;
  const cuda = { file: pytorchFile(options, "cuda") };
  if (build === "cuda") return cuda;
  const cpu = { file: pytorchFile(options, "cpu") };
  for (const locked of [cpu, { ...cpu, args: ["--torch-backend", "cpu"] }]) {
    if ((await uv.finds(python, { locked, making })).success) return locked;
  }
  const outcome = await uv.finds(python, { locked: cuda, making });
  if (!outcome.success) throw making.failure("looking up PyTorch", outcome);
  making.say(
    "PyTorch's CPU build is not in your package index, and PyTorch's index cannot be reached: " +
      "installing the CUDA build, which is large",
  );
  checkRoom(making, [cuda.file, ...options.requirements], options);
  return cuda;
}

/** The total size of these requirement files. */
export function costOf(names: string[]): Cost {
  const costs = names.map((name) => COSTS[name] ?? { download_mib: 0, disk_mib: 0 });
  const sum = (field: keyof Cost) => costs.reduce((total, cost) => total + cost[field], 0);
  return { download_mib: sum("download_mib"), disk_mib: sum("disk_mib") };
}

/**
 * Says what files cost before they are fetched. @throws {InfrastructureError} If the disk has no
 * room for them.
 */
function checkRoom(
  making: Making,
  files: URL[],
  { home, freeBytes: free = freeBytes }: Wanted,
): void {
  const { download_mib, disk_mib } = costOf(["uv", ...files.map(nameOf)]);
  const dir = resolve(home, "env");
  const left = (free(dir) ?? Infinity) / 2 ** 20;
  const gib = (mib: number) => `${(mib / 1024).toFixed(1)} GiB`;
  const needs = `it takes about ${gib(disk_mib)} in ${dir}, which has ${gib(left)} free`;
  if (left >= disk_mib) return making.say(`${needs}; up to ${gib(download_mib)} are downloaded`);
  throw new InfrastructureError(
    `Cannot create the Python environment '${making.name}' because the disk has no room: ` +
      `${needs}. ` +
      "Fix: free some space, or choose a different home with --home",
    { environment: making.name, dir, needed_mib: disk_mib, left_mib: left },
    { retryable: false },
  );
}

/** `torch` of `.../torch.txt`. */
function nameOf(file: URL): string {
  return basename(fileURLToPath(file), ".txt");
}
