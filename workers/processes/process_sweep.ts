import process from "node:process";
import { type Clock, isOwnFolder, ownerOf, PRIVATE_FILE, RUN_FOLDERS } from "../../engine/mod.ts";
import { runCommand } from "./run_command.ts";

/**
 * Every process that we start has this variable: `HOME/RUN/ENGINE_PID.ENGINE_START`, and `/HOST` if
 * the run names its hosts. A later start finds left processes by it.
 */
export const NONCE_VARIABLE = "HOLDFAST_NONCE";

/** What an agent's interpreter runs. */
export const AGENT_MODULE = "holdfast_worker.agent";

/**
 * Which engine started a process, as a variable in the process's environment.
 * @internal
 */
export type Nonce = {
  home: string;
  run: string;
  engine_pid: number;
  engine_start: string;
  host?: string;
};

/** As written in the environment. Run ids may not contain a slash. */
export function nonceText({ home, run, engine_pid, engine_start, host }: Nonce): string {
  return `${home}/${run}/${engine_pid}.${engine_start}${host === undefined ? "" : `/${host}`}`;
}

function parseNonce(text: string): Nonce | null {
  const match = /^([^/]+)\/([^/]+)\/(\d+)\.(\d*)(?:\/([^/]+))?$/.exec(text);
  if (!match) return null;
  const [, home, run, pid, engine_start, host] = match;
  const nonce = { home: home!, run: run!, engine_pid: Number(pid), engine_start: engine_start! };
  return host === undefined ? nonce : { ...nonce, host };
}

/**
 * How the host in the nonce of a run's tracker begins; its name follows. No host of workers can
 * have such a name. Trackers end with their engine: no other engine adopts them.
 */
export const TRACKER_HOST = "~tracker.";

/** This process's nonce for a run. */
export function processNonce(home: string, run: string): Nonce {
  return { home, run, engine_pid: process.pid, engine_start: processStart(process.pid) ?? "" };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The identity of a home, created once, so that nothing touches another home's processes or files.
 * A lost or damaged identity is restored from the owners of the home's directories, or else from
 * `recorded`.
 */
export async function homeNonce(
  home: string,
  recorded?: () => Promise<string | null>,
): Promise<string> {
  const path = `${home}/nonce`;
  const known = await Deno.readTextFile(path).catch(unlessMissing);
  if (known !== undefined && UUID.test(known.trim())) return known.trim();
  const fresh = `${path}.${crypto.randomUUID()}`;
  await Deno.mkdir(home, { recursive: true });
  const id = rememberedHome(home) ?? await recorded?.() ?? crypto.randomUUID();
  await Deno.writeTextFile(fresh, `${id}\n`, { mode: PRIVATE_FILE });
  if (known !== undefined) {
    await Deno.rename(fresh, path); // It was empty or torn, so nothing used it.
  } else {
    try {
      await Deno.link(fresh, path); // Atomic, and only if there is none.
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    } finally {
      await Deno.remove(fresh);
    }
  }
  return (await Deno.readTextFile(path)).trim();
}

/**
 * The home that all directories in it with an owner belong to; null if they disagree, or there are
 * none.
 */
function rememberedHome(home: string): string | null {
  const folders = RUN_FOLDERS.filter((folder) => isOwnFolder(home, folder)).map((folder) =>
    `${home}/${folder}`
  );
  const owners = folders.flatMap((folder) =>
    names(folder).map((name) => ownerOf(`${folder}/${name}`)?.home)
  );
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
    // From field 3 on, because the name may contain anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? null : fields[19] ?? null;
  } catch {
    return null;
  }
}

/**
 * Living processes that carry our nonce. Finds none without /proc (macOS), where guard pipes end
 * the processes.
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
 * Kills every carrier that `doomed` names with SIGKILL, until none is left or the time is over.
 * Returns how many were found.
 */
export async function sweep(
  doomed: (nonce: Nonce) => boolean,
  { clock, limit_ms = 5000 }: { clock: Clock; limit_ms?: number },
): Promise<number> {
  const killed = new Set<number>();
  const until = clock.monotonic() + limit_ms;
  while (true) {
    const carriers = nonceCarriers().filter(({ pid, nonce }) =>
      pid !== process.pid && doomed(nonce)
    );
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
 * Kills the workers of a run on this host, whichever engine started them. Only for a caller that
 * owns the run, or knows that nobody does. Returns how many processes there were.
 */
export async function endWorkersOf(
  home: string,
  run: string,
  { clock }: { clock: Clock },
): Promise<number> {
  const nonce = await homeNonce(home);
  return await sweep((other) => other.home === nonce && other.run === run, { clock });
}

/**
 * What a start of `own.run` may end: everything that earlier engines of this run left except
 * `adopted`, and processes of this home's other runs that have neither engine nor agent. An agent
 * without an engine ends by itself after its grace period.
 */
export function leftBehind(
  engineNonce: Nonce,
  adopted: readonly Nonce[] = [],
): (nonce: Nonce) => boolean {
  const kept = new Set(adopted.map(nonceText));
  const led = new Set(agents().map(({ nonce }) => nonceText(nonce)));
  return (other) => {
    const isOurs = other.engine_pid === engineNonce.engine_pid &&
      other.engine_start === engineNonce.engine_start;
    const isTracker = other.host?.startsWith(TRACKER_HOST) === true;
    if (other.home !== engineNonce.home || (isTracker && isOurs)) return false;
    if (other.run === engineNonce.run) return !kept.has(nonceText(other));
    const alive = processStart(other.engine_pid) === other.engine_start;
    return !alive && !led.has(nonceText(other));
  };
}

export type FoundAgent = { pid: number; start: string; agent_id: string; nonce: Nonce };

/** Living agents, by their command lines. Without /proc it finds none. */
export function agents(): FoundAgent[] {
  return nonceCarriers().flatMap(({ pid, nonce }): FoundAgent[] => {
    const start = processStart(pid);
    const agent_id = agentOf(pid);
    return start === null || agent_id === null ? [] : [{ pid, start, agent_id, nonce }];
  });
}

/** The name with which an agent's process was started; null if it is not an agent. */
function agentOf(pid: number): string | null {
  const argv = readProc(`/proc/${pid}/cmdline`)?.split("\0") ?? [];
  if (argv[argv.indexOf("-m") + 1] !== AGENT_MODULE) return null;
  return argv[argv.indexOf("--agent-id") + 1] ?? null;
}

/** Whether a process carries exactly this nonce. */
export function sameNonce(wanted: Nonce): (nonce: Nonce) => boolean {
  return (other) => nonceText(other) === nonceText(wanted);
}

/**
 * Sends a signal. It is not an error if the process is gone. A negative id names a process group.
 */
export function kill(pid: number, signal: "SIGKILL" | "SIGTERM"): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/**
 * A living process that runs a program of a directory, or has a file of it in memory; null: there
 * is none. Without /proc it knows only the command lines.
 */
export async function processUsing(dir: string): Promise<number | null> {
  const real = await Deno.realPath(dir).catch(() => dir); // Gone meanwhile.
  const paths = [`${dir}/`, `${real}/`];
  const names = (text: string | null) => paths.some((path) => text?.includes(path));
  const ids = processIds();
  if (ids.length === 0) {
    const { lines } = await runCommand(["ps", "-A", "-ww", "-o", "pid=,args="]);
    const found = lines.find(names);
    return found === undefined ? null : Number.parseInt(found);
  }
  return ids.find((pid) =>
    pid !== process.pid &&
    (names(readProc(`/proc/${pid}/cmdline`)) || names(readProc(`/proc/${pid}/maps`)))
  ) ?? null;
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
