import process from "node:process";
import { type Clock, isOwnFolder, ownerOf, PRIVATE_FILE, RUN_FOLDERS } from "../engine/mod.ts";

/**
 * In the environment of every process we start: `HOME/RUN/ENGINE_PID.ENGINE_START`, and `/HOST`
 * where a run names its hosts, so that a later start finds what was left.
 */
export const NONCE_VARIABLE = "HOLDFAST_NONCE";

/** What an agent's interpreter runs. */
export const AGENT_MODULE = "holdfast_worker.agent";

/**
 * Who started a process: a line of its environment, by which it is found again.
 * @internal
 */
export type Nonce = {
  home: string;
  run: string;
  enginePid: number;
  engineStart: string;
  host?: string;
};

/** As written in the environment. Run ids may not contain a slash. */
export function nonceText({ home, run, enginePid, engineStart, host }: Nonce): string {
  return `${home}/${run}/${enginePid}.${engineStart}${host === undefined ? "" : `/${host}`}`;
}

function parseNonce(text: string): Nonce | null {
  const match = /^([^/]+)\/([^/]+)\/(\d+)\.(\d*)(?:\/([^/]+))?$/.exec(text);
  if (!match) return null;
  const [, home, run, pid, engineStart, host] = match;
  const nonce = { home: home!, run: run!, enginePid: Number(pid), engineStart: engineStart! };
  return host === undefined ? nonce : { ...nonce, host };
}

/** This process's nonce for a run. */
export function ownNonce(home: string, run: string): Nonce {
  return { home, run, enginePid: process.pid, engineStart: processStart(process.pid) ?? "" };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The identity of a home, made once: nobody touches another home's processes or files. One that was
 * lost or damaged is made again as the owners of the home's directories know it, or else as
 * `recorded` does.
 */
export async function homeNonce(home: string, recorded?: () => Promise<string | null>): Promise<string> {
  const path = `${home}/nonce`;
  const known = await Deno.readTextFile(path).catch(unlessMissing);
  if (known !== undefined && UUID.test(known.trim())) return known.trim();
  const fresh = `${path}.${crypto.randomUUID()}`;
  await Deno.mkdir(home, { recursive: true });
  const id = rememberedHome(home) ?? await recorded?.() ?? crypto.randomUUID();
  await Deno.writeTextFile(fresh, `${id}\n`, { mode: PRIVATE_FILE });
  if (known !== undefined) {
    await Deno.rename(fresh, path); // Empty or torn: nobody could have used it.
  } else {
    try {
      await Deno.link(fresh, path); // Whole or not at all, and only if there is none.
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    } finally {
      await Deno.remove(fresh);
    }
  }
  return (await Deno.readTextFile(path)).trim();
}

/**
 * The home that all directories in it with an owner belong to; null if they do not agree, or there
 * are none.
 */
function rememberedHome(home: string): string | null {
  const folders = RUN_FOLDERS.filter((folder) => isOwnFolder(home, folder)).map((folder) => `${home}/${folder}`);
  const owners = folders.flatMap((folder) => names(folder).map((name) => ownerOf(`${folder}/${name}`)?.home));
  const known = new Set(owners.filter((one) => one !== undefined));
  return known.size === 1 ? [...known][0]! : null;
}

function names(dir: string): string[] {
  try {
    return [...Deno.readDirSync(dir)].map(({ name }) => name);
  } catch (error) {
    unlessMissing(error);
    return [];
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/**
 * Clock ticks after boot at which a process started; null if there is none, or the system has no
 * /proc.
 */
export function processStart(pid: number): string | null {
  try {
    const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // From field 3 on; the name may hold anything.
    return fields[0] === "Z" || fields[0] === "X" ? null : fields[19] ?? null;
  } catch {
    return null;
  }
}

/**
 * Living processes that carry a nonce of ours. Without /proc (macOS) it finds none: then the guard
 * pipes must do.
 */
export function nonceCarriers(): { pid: number; nonce: Nonce }[] {
  const found: { pid: number; nonce: Nonce }[] = [];
  for (const pid of processIds()) {
    const nonce = nonceOf(pid);
    if (nonce && processStart(pid) !== null) found.push({ pid, nonce });
  }
  return found;
}

/**
 * Kills with SIGKILL every carrier that `doomed` names, until none is left or the time is over.
 * Returns how many were found.
 */
export async function sweep(
  doomed: (nonce: Nonce) => boolean,
  { clock, limitMs = 5000 }: { clock: Clock; limitMs?: number },
): Promise<number> {
  const killed = new Set<number>();
  const until = clock.monotonic() + limitMs;
  while (true) {
    const carriers = nonceCarriers().filter(({ pid, nonce }) => pid !== process.pid && doomed(nonce));
    if (carriers.length === 0) return killed.size;
    for (const { pid } of carriers) {
      killed.add(pid);
      kill(pid, "SIGKILL");
    }
    if (clock.monotonic() >= until) return killed.size;
    await clock.sleep(20);
  }
}

/**
 * Ends the workers that a run of this home has on this host, without a word to them and whichever
 * engine started them: for whoever knows that the run is his, or nobody's. Returns how many
 * processes there were.
 */
export async function endWorkersOf(home: string, run: string, { clock }: { clock: Clock }): Promise<number> {
  const nonce = await homeNonce(home);
  return await sweep((other) => other.home === nonce && other.run === run, { clock });
}

/**
 * What a start of `own.run` may end: whatever earlier engines of this run left but what it goes on
 * with (`adopted`), and of other runs of this home what has neither engine nor agent. An agent
 * without an engine ends by itself after its grace.
 */
export function leftBehind(own: Nonce, adopted: readonly Nonce[] = []): (nonce: Nonce) => boolean {
  const kept = new Set(adopted.map(nonceText));
  const led = new Set(agents().map(({ nonce }) => nonceText(nonce)));
  return (other) => {
    if (other.home !== own.home) return false;
    if (other.run === own.run) return !kept.has(nonceText(other));
    const alive = processStart(other.enginePid) === other.engineStart;
    return !alive && !led.has(nonceText(other));
  };
}

export type FoundAgent = { pid: number; start: string; agentId: string; nonce: Nonce };

/** Living agents, by their command lines. Without /proc it finds none. */
export function agents(): FoundAgent[] {
  return nonceCarriers().flatMap(({ pid, nonce }): FoundAgent[] => {
    const start = processStart(pid);
    const agentId = agentOf(pid);
    return start === null || agentId === null ? [] : [{ pid, start, agentId, nonce }];
  });
}

/** The name that an agent's process was started with; null if it is no agent. */
function agentOf(pid: number): string | null {
  const argv = readProc(`/proc/${pid}/cmdline`)?.split("\0") ?? [];
  if (argv[argv.indexOf("-m") + 1] !== AGENT_MODULE) return null;
  return argv[argv.indexOf("--agent-id") + 1] ?? null;
}

/** Whether a process carries exactly this nonce. */
export function sameNonce(own: Nonce): (nonce: Nonce) => boolean {
  return (other) => nonceText(other) === nonceText(own);
}

/**
 * Sends a signal; a process that is gone is what was wanted. A negative id names a process group.
 */
export function kill(pid: number, signal: "SIGKILL" | "SIGTERM"): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function processIds(): number[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function nonceOf(pid: number): Nonce | null {
  const environment = readProc(`/proc/${pid}/environ`)?.split("\0") ?? [];
  const assignment = environment.find((entry) => entry.startsWith(`${NONCE_VARIABLE}=`));
  return assignment ? parseNonce(assignment.slice(NONCE_VARIABLE.length + 1)) : null;
}

function readProc(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return null; // Another user's, or gone.
  }
}
