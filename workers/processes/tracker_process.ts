import { type Clock, systemClock } from "../../engine/mod.ts";
import { PYTHON_ROOT } from "./local_launcher.ts";
import {
  homeNonce,
  kill,
  NONCE_VARIABLE,
  nonceText,
  processNonce,
  sameNonce,
  sweep,
  TRACKER_HOST,
} from "./process_sweep.ts";
import { TextLineStream } from "./text_line_stream.ts";

/** What a tracker's process says. */
export type TrackerAnswer =
  /** `after`: the number of the last point that the tracker has. `where`: where people see it. */
  | { opened: { after: number; where: string } }
  | { confirmed: number }
  | { ended: true }
  /** Why it cannot continue. It has ended. */
  | { failed: string };

/** The process of one tracker. It reads messages and answers each. */
export type TrackerProcess = {
  pid: number;
  /** Sends a message. Resolves with the answer, also if the process has died. */
  ask(message: unknown): Promise<TrackerAnswer>;
  /** Ends it, and what it has started. */
  end(): Promise<void>;
};

/** How a tracker's process is started. */
type TrackerStart = {
  /** Distinguishes the trackers of a run. */
  name: string;
  python: string;
  /** Of the run. */
  home: string;
  run: string;
  /** What the process and its client print. */
  log_path: string;
  /** Prefixes of variables that it inherits, besides those of every process. */
  variables: readonly string[];
  clock?: Clock;
  /** What the interpreter runs; tests have others. */
  args?: readonly string[];
};

/** Variables that every Python process needs, and those of networks. Credentials are not here. */
const INHERITED = new RegExp(
  `^(?:${
    [
      "PATH|HOME|USER|LOGNAME|LANG|TZ|TMPDIR|LD_LIBRARY_PATH",
      "(?:LC|XDG|SSL|CUDA|NVIDIA|PYTHON)_?.*",
      "(?:HTTPS?|ALL|NO)_PROXY|(?:REQUESTS|CURL)_CA_BUNDLE",
    ].join("|")
  })$`,
  "i",
);

/** What a tracker's process inherits: names that start with one of `prefixes`, and the usual. */
function trackerEnvironment(prefixes: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(Deno.env.toObject()).filter(([name]) =>
      INHERITED.test(name) || prefixes.some((prefix) => name.startsWith(prefix))
    ),
  );
}

/** Ends what trackers of earlier engines of a run left: only one may write. */
export async function endEarlierTrackers(
  { home, run }: { home: string; run: string },
  clock: Clock = systemClock,
): Promise<void> {
  const nonce = await homeNonce(home);
  await sweep(
    (other) =>
      other.home === nonce && other.run === run && other.host?.startsWith(TRACKER_HOST) === true,
    { clock },
  );
}

/** Starts the process of a tracker, in a separate session: Ctrl-C reaches only the engine. */
export async function startTracker(start: TrackerStart): Promise<TrackerProcess> {
  const { name, python, home, run, log_path, variables, clock = systemClock } = start;
  const { args = ["-m", "holdfast_worker.trackers.serve"] } = start;
  await Deno.mkdir(log_path.slice(0, log_path.lastIndexOf("/")), { recursive: true });
  // A nonce of this process alone, so that its end ends exactly what it has started.
  const nonce = { ...processNonce(await homeNonce(home), run), host: `${TRACKER_HOST}${name}` };
  const environment = trackerEnvironment(variables);
  const path = [PYTHON_ROOT, environment.PYTHONPATH].filter(Boolean).join(":");
  const log = '(umask 077; : >>"$1"); log="$1"; shift; exec "$@" 2>>"$log"';
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", log, "tracker", log_path, python, ...args],
    clearEnv: true,
    env: {
      ...environment,
      PYTHONPATH: path,
      PYTHONUNBUFFERED: "1",
      [NONCE_VARIABLE]: nonceText(nonce),
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream()).getReader();
  const writer = child.stdin.getWriter();
  const died = async (): Promise<TrackerAnswer> => {
    const { code, signal } = await child.status;
    const how = signal ? `was killed by ${signal}` : `ended with exit code ${code}`;
    return { failed: `its process ${how} (log: ${log_path})` };
  };
  return {
    pid: child.pid,
    async ask(message) {
      try {
        await writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
      } catch {
        // It has died. What it said last is still to be read.
      }
      const { value, done } = await lines.read();
      return done ? await died() : JSON.parse(value) as TrackerAnswer;
    },
    async end() {
      kill(-child.pid, "SIGKILL");
      await writer.close().catch(() => {});
      await lines.cancel().catch(() => {});
      await child.status;
      await sweep(sameNonce(nonce), { clock });
    },
  };
}
