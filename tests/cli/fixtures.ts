import { fileURLToPath } from "node:url";
import { taskFlags } from "../task_flags.ts";
import { orphans } from "../crash/runs.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const SMALL = `${ROOT}configs/quickstart_small.yaml`;

type Result = { code: number; signal: string | null; out: string; err: string };

/** A command that runs: what it has written so far, a wait for a text in it, and its end. */
type Running = {
  pid: number;
  kill(signal: Deno.Signal): void;
  /** Settles once standard error holds the text; rejects if the command ends first. */
  says(text: string): Promise<void>;
  ended: Promise<Result>;
};

const children = new Set<Deno.ChildProcess>();
const homes = new Set<string>();

/** For `afterAll`: ends what failed tests left running, and removes their homes. */
export async function endAll(): Promise<void> {
  const running = [...children];
  for (const child of running) child.kill("SIGKILL");
  for (const child of running) await child.status;
  for (const home of homes) {
    await orphans(home);
    await Deno.remove(home, { recursive: true });
    homes.delete(home);
  }
}

/**
 * Starts `deno task rl ARGS` without the task runner between, so that a signal reaches the engine
 * itself.
 */
export function start(args: string[], env: Record<string, string> = {}): Running {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", ...taskFlags("rl"), `${ROOT}cli/main.ts`, ...args],
    cwd: ROOT,
    env: { NO_COLOR: "1", OMP_NUM_THREADS: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  children.add(child);
  child.status.then(() => children.delete(child));
  let err = "";
  let watchers: { text: string; found: () => void; missed: (error: Error) => void }[] = [];
  const reading = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      err += chunk;
      for (const { text, found } of watchers) if (err.includes(text)) found();
      watchers = watchers.filter(({ text }) => !err.includes(text));
    }
    for (const { text, missed } of watchers) {
      missed(new Error(`the command ended without saying '${text}':\n${err}`));
    }
  })();
  const ended = (async (): Promise<Result> => {
    const out = await new Response(child.stdout).text();
    const { code, signal } = await child.status;
    await reading;
    return { code, signal, out, err };
  })();
  const says = (text: string) =>
    new Promise<void>((found, missed) =>
      err.includes(text) ? found() : void watchers.push({ text, found, missed })
    );
  return { pid: child.pid, kill: (signal) => child.kill(signal), says, ended };
}

export async function rl(args: string[], env: Record<string, string> = {}): Promise<Result> {
  return await start(args, env).ended;
}

/** The JSON that a reading verb prints. */
export async function json<T = Record<string, unknown>>(args: string[]): Promise<T> {
  const { code, out, err } = await rl([...args, "--json"]);
  if (code !== 0) throw new Error(`Cannot read ${args.join(" ")} (exit ${code}): ${err}`);
  return JSON.parse(out) as T;
}

/** An empty home, which `endAll` removes. */
export async function freshHome(): Promise<string> {
  const home = await Deno.makeTempDir({ prefix: "cli_test_" });
  homes.add(home);
  return home;
}

/** Runs of a home, and processes that still work for it after at most 5 s. */
export async function remains(home: string): Promise<{ runs: number; processes: number }> {
  const runs = await json<unknown[]>(["runs", "--home", home]);
  return { runs: runs.length, processes: await orphans(home) };
}

export async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** A disk of 40 MiB at `dir`, and how to fill it; null where this process may not mount one. */
export async function smallDisk(
  dir: string,
): Promise<{ fill(): Promise<void>; free(): Promise<void>; gone(): Promise<void> } | null> {
  const run = (command: string, args: string[]) =>
    new Deno.Command(command, { args, stderr: "null" }).output();
  await Deno.mkdir(dir);
  if (!(await run("mount", ["-t", "tmpfs", "-o", "size=40m", "tmpfs", dir])).success) return null;
  const filler = `${dir}/filler`;
  return {
    fill: async () => void await run("dd", ["if=/dev/zero", `of=${filler}`, "bs=64k"]),
    free: () => Deno.remove(filler),
    gone: async () => void await run("umount", [dir]),
  };
}
