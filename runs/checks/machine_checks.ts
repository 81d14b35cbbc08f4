import { createServer } from "node:net";
import { dirname, resolve } from "node:path";
import {
  EngineError,
  freeBytes,
  InvalidInputError,
  isNothing,
  PostgresStore,
} from "../../engine/mod.ts";
import { type Check, fail, firstLine, ok, room, warn } from "./check.ts";
import { environmentChecks } from "./environment_checks.ts";
import { findPython, PYTHON_ROOT } from "../../workers/mod.ts";

const SHARED_MEMORY_BYTES = 64 * 2 ** 20;

/** Which requirements of runs this machine meets, and whether the PostgreSQL at `store` answers. */
export async function machineChecks(
  home: string,
  options: { store?: string } = {},
): Promise<Check[]> {
  const checks: (Check | Promise<Check | Check[]>)[] = [ // At once: most wait for a process.
    runtime(),
    python(),
    environmentChecks(),
    gpu(),
    disk(home),
    sharedMemory(),
    loopback(),
    isolation(),
    ...(options.store === undefined ? [] : [store(options.store)]),
  ];
  return (await Promise.all(checks)).flat();
}

function runtime(): Check {
  return ok(
    "deno",
    `${Deno.version.deno} on ${Deno.build.os} ${Deno.build.arch}, ` +
      `${navigator.hardwareConcurrency} cores`,
  );
}

/** Whether rewards in Python can be prevented from seeing other processes. */
async function isolation(): Promise<Check> {
  // Problems with Python have a separate line.
  const { path } = await findPython().catch(() => ({ path: "python3" }));
  const why = await firstLine(path, ["-m", "holdfast_worker.rewards.confinement"], {
    PYTHONPATH: PYTHON_ROOT,
  });
  if (why === "") return ok("isolation", "Python rewards see only their own processes");
  const says = `Python rewards see this user's processes: ${why ?? "no Python to check with"}`;
  return warn("isolation", says, "Allow PID and user namespaces, or run as a separate user");
}

/** The Python that would create environments. */
async function python(): Promise<Check> {
  try {
    const { path, version } = await findPython();
    const says = `${version} at ${path}`;
    if (await firstLine(path, ["-c", "import venv, ensurepip"]) !== null) return ok("python", says);
    return fail(
      "python",
      `${says} has no venv module`,
      "On Debian and Ubuntu, install python3-venv",
    );
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [why, fix] = error.message.split(" Fix: ");
    return fail("python", why!.replace(/\.$/, ""), `Fix: ${fix}`);
  }
}

async function gpu(): Promise<Check> {
  const query = ["--query-gpu=name,memory.free", "--format=csv,noheader"];
  const line = await firstLine("nvidia-smi", query);
  return line === null
    ? warn("gpu", "none found", "Runs use the CPU; large models need an NVIDIA GPU and its driver")
    : ok("gpu", line);
}

/** The part of `path` that exists: itself, or its nearest parent directory. */
function nearest(path: string): { path: string; directory: boolean } {
  const { isDirectory } = statOf(path) ?? { isDirectory: null };
  return isDirectory === null ? nearest(dirname(path)) : { path, directory: isDirectory };
}

function disk(home: string): Check {
  const { path, directory } = nearest(resolve(home));
  if (!directory) {
    return fail(
      "disk",
      `the home cannot be inside '${path}', which is a file`,
      "Name a directory with --home",
    );
  }
  const fix = "Models and checkpoints need room: free some, or name a home elsewhere with --home";
  return room("disk", path, fix);
}

function sharedMemory(): Check {
  if (!statOf("/dev/shm")) {
    return warn("/dev/shm", "missing", "NCCL and vLLM need it: mount a tmpfs");
  }
  const free = freeBytes("/dev/shm") ?? 0;
  const says = `${(free / 2 ** 20).toFixed(0)} MiB free`;
  return free >= SHARED_MEMORY_BYTES
    ? ok("/dev/shm", says)
    : warn("/dev/shm", says, "NCCL and vLLM need more: enlarge it");
}

function statOf(path: string): Deno.FileInfo | null {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (isNothing(error)) return null;
    throw error;
  }
}

async function loopback(): Promise<Check> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(0, "127.0.0.1", resolve)
    );
    return ok("loopback", "ports on 127.0.0.1 can be opened");
  } catch (error) {
    return fail("loopback", (error as Error).message, "Workers connect over 127.0.0.1: allow it");
  } finally {
    server.close();
  }
}

/** Whether the given PostgreSQL can be reached and has our tables, which are created if missing. */
async function store(url: string): Promise<Check> {
  try {
    const opened = new PostgresStore(url, { patience_ms: 3_000 });
    const startedAt = performance.now();
    const runs = await opened.heads().finally(() => opened.close());
    const says = `${opened.where} answers after ${Math.round(performance.now() - startedAt)} ms`;
    return ok("store", `${says}, ${runs.length} runs`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return fail("store", error.message, "Fix --store or HOLDFAST_STORE");
  }
}
