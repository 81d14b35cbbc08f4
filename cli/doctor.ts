import { statfsSync } from "node:fs";
import { createServer } from "node:net";
import { EngineError, PostgresStore } from "../engine/mod.ts";
import { print, printJson } from "./output.ts";

export type Check = { name: string; verdict: "OK" | "WARN" | "FAIL"; says: string; fix: string | null };

const DISK_NEEDED_BYTES = 6 * 2 ** 30;
const SHARED_MEMORY_BYTES = 64 * 2 ** 20;

/** `doctor`: what this machine has, one line each with its verdict and its mend. True: nothing failed. */
export async function doctor(options: { home: string; store?: string; json?: boolean }): Promise<boolean> {
  const checks = await machineChecks(options.home);
  if (options.store !== undefined) checks.push(await store(options.store));
  if (options.json) printJson(checks);
  else {
    for (const { name, verdict, says, fix } of checks) {
      print(`${verdict.padEnd(4)}  ${name.padEnd(14)} ${says}${fix === null ? "" : `. ${fix}`}`);
    }
  }
  return checks.every(({ verdict }) => verdict !== "FAIL");
}

/** What this machine has of what runs need. */
export async function machineChecks(home: string): Promise<Check[]> {
  return [
    runtime(),
    await python(),
    await packageIn(home, "torch"),
    await packageIn(home, "deepspeed"),
    await packageIn(home, "vllm"),
    await gpu(),
    disk(home),
    sharedMemory(),
    await loopback(),
  ];
}

const ok = (name: string, says: string): Check => ({ name, verdict: "OK", says, fix: null });
const warn = (name: string, says: string, fix: string): Check => ({ name, verdict: "WARN", says, fix });
const fail = (name: string, says: string, fix: string): Check => ({ name, verdict: "FAIL", says, fix });

function runtime(): Check {
  return ok(
    "deno",
    `${Deno.version.deno} on ${Deno.build.os} ${Deno.build.arch}, ${navigator.hardwareConcurrency} cores`,
  );
}

/** First line of a command's output; null if it could not be run or failed. */
async function firstLine(command: string, args: string[]): Promise<string | null> {
  try {
    const { success, stdout } = await new Deno.Command(command, { args, stdin: "null", stderr: "null" }).output();
    return success ? new TextDecoder().decode(stdout).trim().split("\n")[0] ?? "" : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied) return null;
    throw error;
  }
}

async function python(): Promise<Check> {
  const version = await firstLine("python3", ["-c", "import sys, venv, ensurepip; print(sys.version.split()[0])"]);
  const mend = "Install Python 3.10 or newer with its venv module";
  if (version === null) return fail("python", "no python3 with venv", mend);
  const [major, minor] = version.split(".").map(Number);
  const enough = major! > 3 || (major === 3 && minor! >= 10);
  return enough ? ok("python", version) : fail("python", `${version} is too old`, mend);
}

/** Managed environments are made on first use, so a missing one is no fault. */
async function packageIn(home: string, name: string): Promise<Check> {
  const found: string[] = [];
  for await (const dir of environments(home)) {
    const version = await firstLine(`${dir}/bin/python`, [
      "-c",
      `from importlib.metadata import version; print(version("${name}"))`,
    ]);
    if (version !== null) found.push(version);
  }
  if (found.length) return ok(name, [...new Set(found)].join(", "));
  return warn(name, "in no managed environment yet", "It is installed by the first run that needs it");
}

async function* environments(home: string): AsyncGenerator<string> {
  try {
    for await (const entry of Deno.readDir(`${home}/env`)) if (entry.isDirectory) yield `${home}/env/${entry.name}`;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

async function gpu(): Promise<Check> {
  const query = ["--query-gpu=name,memory.free", "--format=csv,noheader"];
  const line = await firstLine("nvidia-smi", query);
  return line === null
    ? warn("gpu", "none found", "Runs use the CPU; large models need an NVIDIA GPU and its driver")
    : ok("gpu", line);
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

function disk(home: string): Check {
  let path = home;
  while (!exists(path)) path = path.replace(/\/[^/]*$/, "") || "/";
  const free = freeBytes(path);
  const says = `${(free / 2 ** 30).toFixed(1)} GiB free at ${path}`;
  return free >= DISK_NEEDED_BYTES
    ? ok("disk", says)
    : warn("disk", says, "Environments take 2 to 6 GiB; free some or set --home");
}

function sharedMemory(): Check {
  if (!exists("/dev/shm")) return warn("/dev/shm", "not there", "NCCL and vLLM need it: mount a tmpfs");
  const free = freeBytes("/dev/shm");
  const says = `${(free / 2 ** 20).toFixed(0)} MiB free`;
  return free >= SHARED_MEMORY_BYTES
    ? ok("/dev/shm", says)
    : warn("/dev/shm", says, "NCCL and vLLM need more: enlarge it");
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** A PostgreSQL that was named: whether it can be reached and holds our tables, which are made if they are missing. */
async function store(url: string): Promise<Check> {
  try {
    const opened = new PostgresStore(url, { patience_ms: 3_000 });
    const begun = performance.now();
    const runs = await opened.heads().finally(() => opened.close());
    const says = `${opened.where} answers after ${Math.round(performance.now() - begun)} ms`;
    return ok("store", `${says}, ${runs.length} runs`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return fail("store", error.message, "Mend --store or HOLDFAST_STORE");
  }
}

async function loopback(): Promise<Check> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    return ok("loopback", "ports on 127.0.0.1 can be opened");
  } catch (error) {
    return fail("loopback", (error as Error).message, "Workers connect over 127.0.0.1: allow it");
  } finally {
    server.close();
  }
}
