import { fileURLToPath } from "node:url";
import { type Clock, InfrastructureError } from "../../engine/mod.ts";
import { FAILED_IMPORT, IMPORT_FIX } from "../failures/causes.ts";
import {
  AGENT_MODULE,
  agents,
  type FoundAgent,
  kill,
  leftBehind,
  type Nonce,
  NONCE_VARIABLE,
  nonceText,
  processStart,
  sameNonce,
  sweep,
} from "./process_sweep.ts";
import { workerEnvironment } from "./worker_environment.ts";

/** The directory of the Python package. */
export const PYTHON_ROOT = fileURLToPath(new URL("../python", import.meta.url));

/** The arguments of an agent's process. */
export type AgentStart = {
  agent_id: string;
  hub_file: string;
  /** The agent's own output; ranks have separate logs. */
  log_path: string;
};

/** A started agent. */
export type AgentProcess = {
  pid: number;
  /** Resolves with how the process ended. */
  exited: Promise<string>;
  /** Ends the agent and everything that it started, and waits until nothing is left. */
  destroy(): Promise<void>;
  /** Leaves it running and stops watching it. */
  leave?(): void;
};

/**
 * An agent that an earlier engine of the run started and that is still alive. `nonce`: what its
 * processes carry.
 */
export type LivingAgent = { agent_id: string; process: AgentProcess; nonce: Nonce | null };

/** Starts agents. The rest (ranks, groups, operations) goes over the protocol. */
export interface Launcher {
  /** Starts an agent. Resolves once its process runs. The hub waits for its hello. */
  start(agent: AgentStart): Promise<AgentProcess>;
  /** The living agent of this run; null if there is none. */
  find?(): LivingAgent | null;
  /**
   * Ends everything that earlier engines left, except what this one may adopt, on whichever host.
   */
  sweep?(kept: readonly LivingAgent[]): Promise<void>;
}

/** What an agent on this machine is started with. */
export type LocalLauncherOptions = {
  /** An interpreter with websockets, msgpack and msgspec: any managed environment has them. */
  python: string;
  nonce: Nonce;
  /** The tree that workers may write in, and remove what they wrote. */
  home: string;
  artifacts_dir: string;
  /** HOME/runs/RUN/faults, for faults on purpose. */
  faults_dir: string;
  clock: Clock;
  env?: Record<string, string>;
  /** A command prefix: `["ip", "netns", "exec", "one"]`. It must exec the agent. */
  within?: readonly string[];
};

/**
 * Agents as child processes on this machine, each in a separate session, so that Ctrl-C reaches
 * only the engine.
 */
export function localLauncher(options: LocalLauncherOptions): Launcher {
  const { nonce, clock } = options;
  return {
    start: (agent) => startAgent(agent, options),
    find: () => livingAgent(options),
    sweep: async (kept) => {
      const adopted = kept.flatMap((one) => one.nonce ?? []);
      await sweep(leftBehind(nonce, adopted), { clock });
    },
  };
}

/** How often to check an agent that is not our child. */
const POLL_MS = 200;

function livingAgent({ nonce, clock }: LocalLauncherOptions): LivingAgent | null {
  const { home, run, host } = nonce;
  const isMine = (of: Nonce) => of.home === home && of.run === run && of.host === host;
  const mine = agents().filter((found) => isMine(found.nonce));
  const newest = mine.toSorted((a, b) => Number(a.start) - Number(b.start)).at(-1);
  return newest
    ? { agent_id: newest.agent_id, nonce: newest.nonce, process: foundProcess(newest, clock) }
    : null;
}

/** It is not our child, so only the process table shows when it ends. */
function foundProcess({ pid, start, nonce }: FoundAgent, clock: Clock): AgentProcess {
  const leaving = new AbortController();
  const alive = () => processStart(pid) === start;
  const watch = async () => {
    while (alive()) await clock.sleep(POLL_MS, leaving.signal);
    return "the agent that an earlier engine started has ended";
  };
  const destroy = async () => {
    if (alive()) kill(-pid, "SIGKILL");
    await sweep(sameNonce(nonce), { clock });
  };
  const exited = watch().catch(() => new Promise<string>(() => {}));
  return {
    pid,
    exited,
    destroy,
    leave: () => leaving.abort(new Error("the agent belongs to another engine")),
  };
}

async function startAgent(agent: AgentStart, options: LocalLauncherOptions): Promise<AgentProcess> {
  const { python, nonce, clock, within = [] } = options;
  const log = agent.log_path;
  await Deno.mkdir(log.slice(0, log.lastIndexOf("/")), { recursive: true });
  const args = ["-m", AGENT_MODULE, "--hub-file", agent.hub_file, "--agent-id", agent.agent_id];
  const argv = [...within, python, ...args];
  // The shell gives the agent a log that outlives us (a pipe would break with us) and is then
  // replaced by the agent. Only the log is created with a different umask: ranks export models with
  // the user's.
  const command = new Deno.Command("/bin/sh", {
    args: [
      "-c",
      '(umask 077; : >>"$1"); log="$1"; shift; exec "$@" >>"$log" 2>&1',
      "agent",
      log,
      ...argv,
    ],
    clearEnv: true,
    env: agentEnvironment(options),
    stdin: "null",
    stdout: "null",
    stderr: "null",
    detached: true,
  });
  const child = spawn(command, python);
  const exited = child.status.then(({ code, signal }) =>
    signal ? `the agent was killed by ${signal} (log: ${log})` : exitSentence(code, log)
  );
  const destroy = async () => {
    kill(-child.pid, "SIGKILL");
    await sweep(sameNonce(nonce), { clock });
    await exited;
  };
  return { pid: child.pid, exited, destroy, leave: () => child.unref() };
}

/** Last lines of the agent's log that an error shows. */
const LINES_SHOWN = 8;

/** The cause first: what the agent said last. */
async function exitSentence(code: number, log: string): Promise<string> {
  const text = await Deno.readTextFile(log).catch(() => "");
  const lines = text.trimEnd().split("\n").filter((line) => line.trim() !== "").slice(-LINES_SHOWN);
  const suffix = code !== 0 && lines.length > 0 ? `: ${lines.at(-1)!.trim()}` : "";
  const shown = suffix === "" ? [] : lines.map((line) => `  | ${line}`);
  const next = FAILED_IMPORT.test(lines.at(-1) ?? "")
    ? [`  fix: ${IMPORT_FIX}`, "  next: deno task rl doctor"]
    : [];
  const head = `the agent ended with exit code ${code}${suffix}`;
  return [head, ...shown, `  log: ${log}`, ...next].join("\n");
}

function spawn(command: Deno.Command, python: string): Deno.ChildProcess {
  try {
    return command.spawn();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InfrastructureError(
      `Cannot start the agent with '${python}': ${reason}`,
      { python },
      { cause: error },
    );
  }
}

function agentEnvironment(options: LocalLauncherOptions): Record<string, string> {
  const env = workerEnvironment({ hub_token: true }); // For rewards whose `env` names it.
  return {
    ...env,
    ...options.env,
    PYTHONPATH: [PYTHON_ROOT, env.PYTHONPATH].filter(Boolean).join(":"),
    PYTHONUNBUFFERED: "1",
    [NONCE_VARIABLE]: nonceText(options.nonce),
    HOLDFAST_ARTIFACTS: options.artifacts_dir,
    HOLDFAST_HOME_DIR: options.home,
    HOLDFAST_FAULTS_DIR: options.faults_dir,
  };
}
