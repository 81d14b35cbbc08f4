import { InvalidInputError } from "../../engine/mod.ts";
import { runCommand } from "../processes/run_command.ts";

/** The oldest Python that runs the workers: the required numpy needs it. */
export const PYTHON_MINOR_MIN = 11;

/** The newest Python that every locked requirement has a wheel for. */
export const PYTHON_MINOR_MAX = 14;

const NAMES = Array.from(
  { length: PYTHON_MINOR_MAX - PYTHON_MINOR_MIN + 1 },
  (_, i) => `3.${PYTHON_MINOR_MAX - i}`,
);
const CANDIDATES = ["python3", ...NAMES.map((version) => `python${version}`), "python"];

/** What an interpreter reports about itself. */
type Python = { path: string; version: string };

/**
 * The Python that creates environments: `named` (HOLDFAST_PYTHON), else the first of the usual
 * names whose version fits.
 * @throws {InvalidInputError} One sentence that says what was found and how to fix it.
 */
export async function findPython(
  named = Deno.env.get("HOLDFAST_PYTHON"),
  signal?: AbortSignal,
): Promise<Python> {
  const found: string[] = [];
  for (const candidate of named ? [named] : CANDIDATES) {
    const python = await describePython(candidate, signal);
    if (python === null) continue;
    const minor = minorOf(python.version);
    if (minor >= PYTHON_MINOR_MIN && minor <= PYTHON_MINOR_MAX) return python;
    found.push(`'${candidate}' is ${python.version}`);
  }
  const none = named ? `'${named}' does not run` : "none was found on PATH";
  throw new InvalidInputError(
    `Cannot create a Python environment because Python 3.${PYTHON_MINOR_MIN} to ` +
      `3.${PYTHON_MINOR_MAX} is needed: ` +
      `${
        found.join(", ") || none
      }. Fix: install one and put it on PATH, or name your own environment with \`python:\``,
    { found },
  );
}

/**
 * What an environment depends on of the Python that makes it: its files are for one implementation,
 * minor version and platform, and its interpreter is a link to the base Python.
 */
export type PythonBuild = { tag: string; version: string; platform: string; base: string };

/** JSON with those fields. A virtual environment's base is the Python that it was made with. */
const BUILD = `
import json, os, platform, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
minor = "%d.%d" % sys.version_info[:2]
print(json.dumps({
    "tag": sys.implementation.name + minor + getattr(sys, "abiflags", ""),
    "version": platform.python_version(),
    "platform": sysconfig.get_platform(),
    "base": os.path.realpath(base),
}))
`;

/** A Python that makes environments. */
export type BasePython = { path: string; build: PythonBuild };

/**
 * The Python of {@linkcode findPython}, with what tells its environments from others'.
 * @throws {InvalidInputError} If there is none.
 */
export async function basePython(named?: string, signal?: AbortSignal): Promise<BasePython> {
  const { path } = await findPython(named, signal);
  const outcome = await runCommand([path, "-c", BUILD], { signal });
  if (outcome.success) return { path, build: JSON.parse(outcome.lines.at(-1)!) as PythonBuild };
  throw new InvalidInputError(
    `Cannot create a Python environment with '${path}' because it does not run: ` +
      `${outcome.lines.at(-1) ?? "no output"}. Fix: name a different Python with HOLDFAST_PYTHON`,
    { path },
  );
}

/** Null if the interpreter does not run. Rejects with the signal's reason if the signal ended it. */
export async function describePython(
  interpreter: string,
  signal?: AbortSignal,
): Promise<Python | null> {
  const probe = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.executable)";
  const outcome = await runCommand([interpreter, "-c", probe], { signal });
  const [, version, path] = /^(\d+\.\d+\.\d+) (.+)$/.exec(outcome.lines.at(-1)?.trim() ?? "") ?? [];
  return outcome.success && version && path ? { version, path } : null;
}

/** The minor version of Python 3. Other major versions are infinitely older or newer. */
function minorOf(version: string): number {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 3 ? minor : (major - 3) * Infinity;
}

/**
 * Checks a custom environment for packages without changing it or importing them. It may have a
 * newer Python than managed environments.
 * @throws {InvalidInputError} Names what is missing and how to install it.
 */
export async function checkPython(
  interpreter: string,
  packages: string[],
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const python = await describePython(interpreter, signal);
  const refuse = (why: string, fix: string) =>
    new InvalidInputError(
      `Cannot use the Python interpreter '${interpreter}' because ${why}. Fix: ${fix}`,
      {
        interpreter,
      },
    );
  if (python === null) {
    throw refuse(
      "it does not run",
      "name a different one with `python:`, or leave it out for a managed environment",
    );
  }
  if (minorOf(python.version) < PYTHON_MINOR_MIN) {
    throw refuse(
      `Python 3.${PYTHON_MINOR_MIN} or newer is required: it is ${python.version}`,
      "name a newer one",
    );
  }
  const probe = "import importlib.util, sys; " +
    "print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])";
  const outcome = await runCommand([interpreter, "-c", probe, ...packages], { signal });
  const missing = outcome.lines.at(-1)?.trim() ?? "";
  if (outcome.success && missing === "") return;
  const what = outcome.success
    ? `it lacks ${missing.split(" ").join(", ")}`
    : outcome.lines.at(-1) ?? "it does not run";
  const install = outcome.success ? ` (${interpreter} -m pip install ${missing})` : "";
  throw refuse(
    what,
    `install them there${install}, or leave \`python\` out for a managed environment`,
  );
}
