import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InstallProgress } from "./install_progress.ts";
import { madeOnce, placeOf } from "./made_once.ts";
import type { Making } from "./making.ts";
import { asUvSettings, pipSettings, type UvSettings } from "./pip_settings.ts";
import type { Python } from "./python_interpreter.ts";
import type { CommandOutcome } from "./run_command.ts";

const LOCK = new URL("./python/requirements/uv.txt", import.meta.url);

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

/** The uv that creates a home's environments. It searches where the user's pip would. */
export class Uv {
  readonly #binary: string;
  readonly #settings: UvSettings;

  private constructor(binary: string, settings: UvSettings) {
    this.#binary = binary;
    this.#settings = settings;
  }

  /** uv of a home, installed on first use by pip, which a Python brings along. */
  static async of(
    home: string,
    { python, making }: { python: Python; making: Making },
  ): Promise<Uv> {
    const place = placeOf(home, { name: "uv", text: await Deno.readTextFile(LOCK) });
    const steps = making.of(place);
    const own = await madeOnce(place, {
      onWait: () => steps.say("waiting for another process that is creating it"),
      make: async () => {
        steps.say("installing uv, which makes the others");
        await steps.must("`python -m venv`", [python.path, "-m", "venv", place.path]);
        const pip = [
          join(place.path, "bin", "python"),
          "-m",
          "pip",
          "install",
          "--require-hashes",
          "--no-deps",
        ];
        const quiet = [
          "--disable-pip-version-check",
          "--progress-bar",
          "off",
          "--only-binary",
          ":all:",
        ];
        await steps.must("`pip install` of uv", [...pip, ...quiet, "-r", fileURLToPath(LOCK)], {
          env: { ...Deno.env.toObject(), PIP_USER: "0" },
          doing: () => "installing uv",
        });
      },
    });
    // The requirements determine the build of PyTorch.
    const { UV_TORCH_BACKEND: _, ...environment } = Deno.env.toObject();
    const { env, args } = asUvSettings(await pipSettings(own), environment);
    // On the environments' disk: files are linked, not copied.
    const UV_CACHE_DIR = resolve(home, "env", "cache");
    return new Uv(join(place.path, "bin", "uv"), {
      env: { ...DEFAULTS, UV_CACHE_DIR, ...env, ...environment },
      args,
    });
  }

  /** Whether these requirements are available. */
  finds(
    python: string,
    { locked, making }: { locked: Locked; making: Making },
  ): Promise<CommandOutcome> {
    const env = { ...this.#settings.env, UV_HTTP_RETRIES: "1" };
    return making.try([...this.#install(python, locked), "--dry-run"], {
      env,
      doing: () => "looking up PyTorch",
    });
  }

  /**
   * Installs requirements one after the other by their hashes. Skips their own dependencies, which
   * the locks contain.
   * @throws {InfrastructureError} With the cause, if one cannot be installed.
   */
  async install(
    python: string,
    { requirements, making, env = {} }: {
      requirements: Locked[];
      making: Making;
      env?: Record<string, string>;
    },
  ): Promise<void> {
    for (const locked of requirements) {
      const progress = new InstallProgress();
      const builds = [...HASHED_BUILDS, "--build-constraints", fileURLToPath(locked.file)];
      const last = locked === requirements.at(-1) ? ["--compile-bytecode"] : [];
      await making.must(
        "the installation",
        [...this.#install(python, locked), ...builds, ...last],
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
  compile(args: string[], making: Making): Promise<void> {
    const env = { ...Deno.env.toObject(), ...DEFAULTS };
    return making.must("locking", [this.#binary, "pip", "compile", ...args], { env });
  }

  #install(python: string, { file, args = [] }: Locked): string[] {
    const strict = ["--no-deps", "--require-hashes", ...this.#settings.args, ...args];
    return [
      this.#binary,
      "pip",
      "install",
      "--python",
      python,
      ...strict,
      "--requirements",
      fileURLToPath(file),
    ];
  }
}
