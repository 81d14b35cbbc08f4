/**
 * Runs its arguments as a command that reads so many bytes of our input, until that ends or until
 * our input does: a process that is gone has closed the other end. The tools that it needs are also
 * found where the command's PATH has none.
 */
const GUARDED = `exec 3<&0
tools=$PATH:/usr/bin:/bin
bytes=$1
shift
input=$(PATH=$tools head -c "$bytes" <&3 2>/dev/null; echo .)
printf %s "\${input%.}" 2>/dev/null | "$@" 3<&- &
child=$!
{ PATH=$tools cat <&3; kill -KILL 0; } >/dev/null 2>&1 &
guard=$!
wait $child
code=$?
kill -KILL $guard
exit $code`;

type GuardOptions = {
  /** On the command's standard input; nothing: it is at its end. */
  input?: string;
  env?: Record<string, string>;
  /** `env` is the whole environment. */
  clear_env?: boolean;
  signal?: AbortSignal;
};

/** A command's output, and how it ends. */
type GuardedProcess = {
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  /** The exit code: 127 if there is no such command, 128 and the signal's number if one ended it. */
  code: Promise<number>;
};

/**
 * Starts a short-lived command in a separate process group, which the terminal's Ctrl-C does not
 * reach: what it says about the machine is true while a run stops, too. The whole group ends
 * immediately with the signal, and with this process, however that ends.
 * @throws The signal's reason, if that has come. `code` rejects with it later.
 */
export function guardedProcess(argv: string[], options: GuardOptions): GuardedProcess {
  const { input = "", env, clear_env: clearEnv, signal } = options;
  signal?.throwIfAborted();
  const bytes = new TextEncoder().encode(input);
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", GUARDED, "sh", `${bytes.length}`, ...argv],
    env,
    clearEnv,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    detached: true,
  }).spawn();
  const stdin = child.stdin.getWriter();
  const fed = bytes.length === 0 ? Promise.resolve() : stdin.write(bytes);
  fed.catch(() => {}); // A command that ends without reading says why itself.
  const end = () => endGroup(child.pid);
  signal?.addEventListener("abort", end, { once: true });
  const code = child.status.then(async (status) => {
    signal?.removeEventListener("abort", end);
    await stdin.close().catch(() => {}); // Open until here: see `GUARDED`.
    if (!status.success) signal?.throwIfAborted(); // The signal ended it.
    return status.code;
  });
  return { stdout: child.stdout, stderr: child.stderr, code };
}

function endGroup(leader: number): void {
  try {
    Deno.kill(-leader, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // It has just ended.
  }
}
