import { InvalidInputError } from "../engine/mod.ts";
import { runCommand } from "./run_command.ts";

/** The oldest Python that runs the workers. */
export const PYTHON_MINOR_MIN = 10;

const CANDIDATES = ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python"];

/**
 * A Python of 3.10 or newer that can make environments: `named`, else the first of the usual names that will do.
 * @throws {InvalidInputError} One sentence that says what was found and how to mend it.
 */
export async function findPython(named?: string): Promise<string> {
  const found: string[] = [];
  for (const candidate of named ? [named] : CANDIDATES) {
    const version = await pythonVersion(candidate);
    if (version === null) continue;
    if (newEnough(version)) return candidate;
    found.push(`'${candidate}' is ${version}`);
  }
  const seen = found.length > 0 ? found.join(", ") : named ? `'${named}' does not run` : "none was found on PATH";
  throw new InvalidInputError(
    `Cannot make a Python environment as Python 3.${PYTHON_MINOR_MIN} or newer is needed: ${seen} (install one and put it on PATH, or name an environment of your own with \`python:\`)`,
    { found },
  );
}

/** `3.11.7`, or null if the interpreter does not run. */
export async function pythonVersion(interpreter: string): Promise<string | null> {
  const outcome = await runCommand([interpreter, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]);
  return outcome.success ? outcome.lines.at(-1)?.trim() ?? null : null;
}

function newEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 3 || (major === 3 && minor >= PYTHON_MINOR_MIN);
}

/**
 * Checks a user's own environment for packages, without changing it and without importing them.
 * @throws {InvalidInputError} Names what is missing and how to install it.
 */
export async function checkPython(interpreter: string, packages: string[]): Promise<void> {
  const version = await pythonVersion(interpreter);
  if (version === null) {
    throw new InvalidInputError(`Cannot use '${interpreter}' as a Python interpreter as it does not run`, {
      interpreter,
    });
  }
  if (!newEnough(version)) {
    throw new InvalidInputError(
      `Cannot use '${interpreter}' as Python 3.${PYTHON_MINOR_MIN} or newer is needed: it is ${version}`,
      { interpreter, version },
    );
  }
  const probe = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])";
  const outcome = await runCommand([interpreter, "-c", probe, ...packages]);
  const missing = outcome.lines.at(-1)?.trim() ?? "";
  if (outcome.success && missing === "") return;
  const what = outcome.success
    ? `it lacks ${missing.split(" ").join(", ")}`
    : outcome.lines.at(-1) ?? "it does not run";
  throw new InvalidInputError(
    `Cannot use the Python environment of '${interpreter}' as ${what}: install that there, or leave \`python\` out for a managed one`,
    { interpreter, missing },
  );
}
