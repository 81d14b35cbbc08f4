import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { DrainedError, freeBytes, InfrastructureError } from "../../engine/mod.ts";
import { keepBytecode } from "./bytecode.ts";
import { environmentsDir } from "./environments_dir.ts";
import { hasGpu } from "../fleet/gpus.ts";
import { type InstalledPackages, installedPackages } from "./installed_packages.ts";
import { completePlace, createOnce, type Place, placeOf } from "./create_once.ts";
import { Creation, type MakingOptions, ROOM_FIX } from "./creation.ts";
import {
  type BasePython,
  basePython,
  checkPython,
  type PythonBuild,
} from "./python_interpreter.ts";
import { type Locked, Uv } from "./uv.ts";

/**
 * One environment per engine and per build of PyTorch, so that DeepSpeed and vLLM never have to
 * agree on versions. Without PyTorch: one for trackers, and one that fetches models of the hub.
 */
export type EnvironmentKind = `${"torch" | "deepspeed" | "vllm"}_${Build}` | "trackers" | "hub";
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
  "msgspec",
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
  // A user's own interpreter is checked for a tracker's client by its process, and fetches models if
  // workers can run in it.
  trackers: { modules: [], build: null, requirements: ["trackers"] },
  hub: { modules: [], build: null, requirements: ["hub"] },
};

type Cost = { download_mib: number; disk_mib: number };

/**
 * Download and disk size of each requirement file, measured on x86-64 Linux with Python 3.11. Files
 * that are not listed are small. Without compiled modules, which imports add.
 */
const COSTS: Record<string, Cost> = {
  uv: { download_mib: 17, disk_mib: 63 },
  pytorch_cpu: { download_mib: 183, disk_mib: 695 },
  pytorch_cuda: { download_mib: 2603, disk_mib: 4514 },
  torch: { download_mib: 97, disk_mib: 354 },
  deepspeed: { download_mib: 100, disk_mib: 366 },
  vllm_cpu: { download_mib: 674, disk_mib: 2379 },
  vllm_cuda: { download_mib: 1166, disk_mib: 2379 },
  trl: { download_mib: 164, disk_mib: 580 },
  trackers: { download_mib: 86, disk_mib: 291 },
  hub: { download_mib: 7, disk_mib: 24 },
};

/** Where environments are, and what creates them. */
export type EnvironmentOptions = MakingOptions & {
  /** Where managed environments are, if not in the user's directory of them. */
  dir?: string;
  /** The user's own interpreter: only checked, never changed. */
  user_python?: string | null;
  /** The Python that creates managed environments. */
  base?: string;
  /** The directory of the requirement files. */
  requirements_dir?: URL;
  /** Free bytes on a directory's disk; null if unknown. */
  freeBytes?: (dir: string) => number | null;
};

const REQUIREMENTS = new URL("../python/requirements/", import.meta.url);

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
 * fix it. {DrainedError} If the signal ended it.
 */
export async function ensureEnvironment(
  kind: EnvironmentKind,
  options: EnvironmentOptions = {},
): Promise<string> {
  const { modules, ...recipe } = RECIPES[kind];
  const { user_python: userPython, signal } = options;
  if (userPython) {
    await unlessStopped(kind, signal, () => checkPython(userPython, modules, { signal }));
    return userPython;
  }
  const requirements = filesOf(recipe.requirements, options);
  return await ensureCreated(kind, { ...options, ...recipe, requirements });
}

/** The interpreter of a managed environment if it is complete already. */
export async function existingEnvironment(
  kind: EnvironmentKind,
  options: Pick<EnvironmentOptions, "dir" | "base" | "signal"> = {},
): Promise<string | null> {
  const { dir = environmentsDir(), base, signal } = options;
  const { build, requirements } = RECIPES[kind];
  const python = await basePython(base, signal);
  const wanted = { dir, build, requirements: filesOf(requirements), signal };
  const place = await placeFor(kind, wanted, python.build);
  return await completePlace(place, (path) => checkOf(path, wanted));
}

/**
 * The interpreter of a managed environment for any locked requirements with PyTorch. No worker runs
 * in it.
 */
export async function ensureRequirements(
  requirements: URL,
  options: Omit<EnvironmentOptions, "own"> = {},
): Promise<string> {
  const build = hasGpu() ? "cuda" : "cpu";
  const name = `${nameOf(requirements)}_${build}`;
  return await ensureCreated(name, { ...options, build, requirements: [requirements] });
}

/** The directories that this release uses of those made with a Python: the rest is of others. */
export async function usedPlaces(dir: string, python: PythonBuild): Promise<string[]> {
  const kinds = Object.entries(RECIPES).map(([kind, { requirements, build }]) =>
    placeFor(kind, { dir, build, requirements: filesOf(requirements) }, python)
  );
  const places = await Promise.all([Uv.place(dir, { build: python }), ...kinds]);
  return places.map(({ path }) => path);
}

type Wanted = Omit<EnvironmentOptions, "own" | "dir"> & Pick<Recipe, "build" | "env"> & {
  dir: string;
  requirements: URL[];
};

async function ensureCreated(
  kind: string,
  { dir = environmentsDir(), ...options }: Omit<Wanted, "dir"> & { dir?: string },
): Promise<string> {
  const wanted = { ...options, dir };
  const { base, signal } = wanted;
  return await unlessStopped(kind, signal, async () => {
    const python = await basePython(base, signal);
    const place = await placeFor(kind, wanted, python.build);
    const creation = new Creation(place, wanted);
    return await createOnce(place, {
      onWait: () => creation.say("waiting for another process that is creating it"),
      make: (path) => make(path, { ...wanted, creation, python }),
      check: (path) => checkOf(path, wanted),
      signal,
    });
  });
}

/** The work's result. @throws {DrainedError} If it fails once the signal has come. */
async function unlessStopped<T>(
  kind: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!signal?.aborted) throw cause;
    throw new DrainedError(
      `Cannot finish the Python environment '${kind}' because the run stops. Fix: resume the run`,
      { environment: kind },
      { cause, retryable: true, counted: false },
    );
  }
}

/** What is missing of an environment, with whichever build of PyTorch was available. */
async function checkOf(path: string, wanted: Wanted): Promise<InstalledPackages> {
  const found = await installedPackages(path, { locks: allFilesOf(wanted) }, wanted.signal);
  if (found.missing.length === 0 || wanted.build !== "cpu") return found;
  const locks = allFilesOf({ ...wanted, build: "cuda" });
  const other = await installedPackages(path, { locks }, wanted.signal);
  return other.missing.length === 0 ? other : found;
}

/** Different requirements have different directories. */
async function placeFor(kind: string, wanted: Wanted, python: PythonBuild): Promise<Place> {
  const files = allFilesOf(wanted);
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(file)));
  return placeOf(wanted.dir, { name: kind, text: texts.join("\n"), python });
}

type Requirements = Pick<EnvironmentOptions, "requirements_dir">;

function filesOf(names: string[], { requirements_dir = REQUIREMENTS }: Requirements = {}): URL[] {
  return names.map((name) => new URL(`${name}.txt`, requirements_dir));
}

function pytorchFile(options: Requirements, build: Build): URL {
  return filesOf([`pytorch_${build}`], options)[0]!;
}

function allFilesOf(wanted: Wanted): URL[] {
  const pytorch = wanted.build === null ? [] : [pytorchFile(wanted, wanted.build)];
  return [...pytorch, ...wanted.requirements];
}

async function make(
  path: string,
  { creation, python, ...wanted }: Wanted & { creation: Creation; python: BasePython },
): Promise<void> {
  const began = performance.now();
  checkRoom(creation, allFilesOf(wanted), wanted);
  const uv = await Uv.of(wanted.dir, { python, creation });
  await uv.venv(path, { python, creation });
  await keepBytecode(path);
  const interpreter = join(path, "bin", "python");
  const { build } = wanted;
  const pytorch = build === null
    ? []
    : [await pytorchFor(interpreter, { ...wanted, build, creation, uv })];
  const others = wanted.requirements.map((file): Locked => ({ file }));
  const requirements = [...pytorch, ...others];
  await uv.install(interpreter, { requirements, creation, env: wanted.env });
  const locks = requirements.map(({ file }) => file);
  const { missing } = await installedPackages(path, { locks }, wanted.signal);
  if (missing.length > 0) {
    // The cache may be what is damaged: its files are linked, not copied.
    creation.say(`it lacks ${missing[0]}: installing again, without the cache`);
    await uv.install(interpreter, { requirements, creation, env: wanted.env, again: true });
  }
  creation.say(`ready after ${Math.round((performance.now() - began) / 1000)} s`);
}

/**
 * The build of PyTorch that is available. Looks for the CPU build in the user's package index (a
 * mirror may have it; the public one has it for macOS), then in PyTorch's own index. If neither has
 * it, uses the much larger CUDA build.
 */
async function pytorchFor(
  python: string,
  options: Wanted & { build: Build; creation: Creation; uv: Uv },
): Promise<Locked> {
  const { creation, uv, build } = options;
  const cuda = { file: pytorchFile(options, "cuda") };
  if (build === "cuda") return cuda;
  const cpu = { file: pytorchFile(options, "cpu") };
  for (const locked of [cpu, { ...cpu, args: ["--torch-backend", "cpu"] }]) {
    if ((await uv.finds(python, { locked, creation })).success) return locked;
  }
  const outcome = await uv.finds(python, { locked: cuda, creation });
  if (!outcome.success) throw creation.failure("looking up PyTorch", outcome);
  creation.say(
    "PyTorch's CPU build is not in your package index, and PyTorch's index cannot be reached: " +
      "installing the CUDA build, which is large. There may be a CPU build for a different Python: " +
      "name one with HOLDFAST_PYTHON",
  );
  checkRoom(creation, [cuda.file, ...options.requirements], options);
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
  creation: Creation,
  files: URL[],
  { dir, freeBytes: free = freeBytes }: Wanted,
): void {
  const { download_mib, disk_mib } = costOf(["uv", ...files.map(nameOf)]);
  const available = (free(dir) ?? Infinity) / 2 ** 20;
  const size = (mib: number) =>
    mib < 100 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
  const needs = `it takes about ${size(disk_mib)} in ${dir}, which has ${size(available)} free`;
  if (available >= disk_mib) {
    return creation.say(`${needs}; up to ${size(download_mib)} are downloaded`);
  }
  throw new InfrastructureError(
    `Cannot create the Python environment '${creation.name}' because the disk has no room: ` +
      `${needs}. ` +
      `Fix: ${ROOM_FIX}`,
    { environment: creation.name, dir, needed_mib: disk_mib, left_mib: available },
    { retryable: false },
  );
}

/** `torch` of `.../torch.txt`. */
function nameOf(file: URL): string {
  return basename(fileURLToPath(file), ".txt");
}
