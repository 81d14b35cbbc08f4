import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isNamed, removeTree } from "../../engine/mod.ts";
import { InstallProgress } from "./install_progress.ts";
import { createOnce, type Place, placeOf } from "./create_once.ts";
import type { Creation } from "./creation.ts";
import { asUvSettings, pipSettings, type UvSettings } from "./pip_settings.ts";
import type { BasePython } from "./python_interpreter.ts";
import type { CommandOutcome } from "../processes/run_command.ts";

const LOCK = new URL("../python/requirements/uv.txt", import.meta.url);

/** uv's cache, in the directory of the environments. */
export const CACHE = "cache";

/** What uv does unless the user's variables say otherwise. */
const DEFAULTS = {
  UV_SYSTEM_CERTS: "true",
  UV_PYTHON_DOWNLOADS: "never",
  // Searches like pip: each file is checked against its hash, whichever index it comes from.
  UV_INDEX_STRATEGY: "unsafe-best-match",
};

/** Build dependencies are locked too, in the same file. */
const HASHED_BUILDS = ["--preview-features", "build-dependency-hashes", "--require-build-hashes"];

/** Locked requirements, and where uv looks for them besides the user's package index. */
export type Locked = { file: URL; args?: string[] };

/** The uv that creates environments. It searches where the user's pip would. */
export class Uv {
  readonly #binary: string;
  readonly #settings: UvSettings;

  private constructor(binary: string, settings: UvSettings) {
    this.#binary = binary;
    this.#settings = settings;
  }

  /** Where uv is, which environments of a Python need. */
  static async place(dir: string, { build }: Pick<BasePython, "build">): Promise<Place> {
    return placeOf(dir, { name: "uv", text: await Deno.readTextFile(LOCK), python: build });
  }

  /** uv of a directory of environments, installed on first use by pip, which a Python brings. */
  static async of(
    dir: string,
    { python, creation }: { python: BasePython; creation: Creation },
  ): Promise<Uv> {
    const place = await Uv.place(dir, python);
    const steps = creation.of(place);
    const interpreter = await createOnce(place, {
      onWait: () => steps.say("waiting for another process that is creating it"),
      make: (path) => {
        steps.say("installing uv, which makes the others");
        return installByPip(path, { python, steps, lock: LOCK });
      },
      check: async (path) => ({
        packages: {},
        missing: await Deno.stat(join(path, "bin", "uv")).then(() => [], () => ["uv"]),
      }),
      signal: creation.signal,
    });
    // The requirements determine the build of PyTorch.
    const { UV_TORCH_BACKEND: _, ...environment } = Deno.env.toObject();
    const { env, args } = asUvSettings(
      await pipSettings(interpreter, creation.signal),
      environment,
    );
    // On the environments' disk: files are linked, not copied.
    const UV_CACHE_DIR = join(dir, CACHE);
    return new Uv(join(place.path, "bin", "uv"), {
      env: { ...DEFAULTS, UV_CACHE_DIR, ...env, ...environment },
      args,
    });
  }

  /** Creates an empty environment that may be renamed: its scripts find the Python beside them. */
  async venv(path: string, { python, creation }: { python: BasePython; creation: Creation }) {
    const args = ["venv", "--relocatable", "--no-project", "--python", python.path, path];
    await creation.must("`uv venv`", [this.#binary, ...args], { env: this.#settings.env });
  }

  /** Whether these requirements are available. */
  finds(
    python: string,
    { locked, creation }: { locked: Locked; creation: Creation },
  ): Promise<CommandOutcome> {
    const env = { ...this.#settings.env, UV_HTTP_RETRIES: "1" };
    const { file, args = [] } = locked;
    return creation.try([...this.#install(python, { files: [file], args }), "--dry-run"], {
      env,
      doing: () => "looking up PyTorch",
    });
  }

  /**
   * Installs requirements by their hashes, together where they are looked for in the same places:
   * then one is downloaded while another is unpacked. Skips their own dependencies, which the locks
   * contain. Compiles no modules: that takes longer than the rest, and Python does it at the first
   * import of those that are used.
   * @throws {InfrastructureError} With the cause, if one cannot be installed.
   */
  async install(
    python: string,
    { requirements, creation, env = {}, again = false }: {
      requirements: Locked[];
      creation: Creation;
      env?: Record<string, string>;
      /** Everything once more, and nothing from the cache. */
      again?: boolean;
    },
  ): Promise<void> {
    for (const { files, args } of together(requirements)) {
      const progress = new InstallProgress();
      const constraints = files.flatMap((file) => ["--build-constraints", fileURLToPath(file)]);
      await creation.must(
        "the installation",
        [
          ...this.#install(python, { files, args }),
          ...HASHED_BUILDS,
          ...constraints,
          ...(again ? ["--reinstall", "--no-cache"] : []),
        ],
        {
          env: { ...this.#settings.env, ...env },
          onLine: (line) => progress.take(line),
          doing: () => progress.text(),
        },
      );
    }
  }

  /**
   * Runs `uv pip compile` with the public index, whatever pip's settings are: its output is for
   * everybody.
   */
  compile(args: string[], creation: Creation): Promise<void> {
    const env = { ...Deno.env.toObject(), ...DEFAULTS };
    return creation.must("locking", [this.#binary, "pip", "compile", ...args], { env });
  }

  #install(python: string, { files, args }: Together): string[] {
    const requirements = files.flatMap((file) => ["--requirements", fileURLToPath(file)]);
    const strict = ["--no-deps", "--require-hashes", ...this.#settings.args, ...args];
    return [this.#binary, "pip", "install", "--python", python, ...strict, ...requirements];
  }
}

/** Requirements that one call installs. */
type Together = { files: URL[]; args: string[] };

function together(requirements: Locked[]): Together[] {
  const groups: Together[] = [];
  for (const { file, args = [] } of requirements) {
    const same = groups.find((group) => group.args.join(" ") === args.join(" "));
    if (same) same.files.push(file);
    else groups.push({ files: [file], args });
  }
  return groups;
}

const PIP_SCRIPTS = /(?:pip|[Aa]ctivate).*/;

/** Installs locked requirements into a new environment by pip, for what needs no uv. */
export async function installByPip(
  path: string,
  { python, steps, lock }: { python: BasePython; steps: Creation; lock: URL },
): Promise<void> {
  await steps.must("`python -m venv`", [python.path, "-m", "venv", path]);
  const bin = join(path, "bin");
  const pip = [join(bin, "python"), "-m", "pip", "install", "--require-hashes", "--no-deps"];
  const quiet = ["--disable-pip-version-check", "--progress-bar", "off"];
  const files = ["--only-binary", ":all:", "-r", fileURLToPath(lock)];
  await steps.must("`pip install`", [...pip, ...quiet, ...files], {
    env: { ...Deno.env.toObject(), PIP_USER: "0" },
    doing: () => `installing ${steps.name}`,
  });
  // These name the directory that they were made in, which is renamed. `python -m pip` works.
  for await (const { name } of Deno.readDir(bin)) {
    if (!isNamed(name, PIP_SCRIPTS)) continue;
    await removeTree(join(bin, name), { home: path, named: PIP_SCRIPTS, owner: null });
  }
}
