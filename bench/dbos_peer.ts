/**
 * DBOS-TS in a separate process, under Node, with its dependencies in a separate folder: not part
 * of Holdfast.
 */
import { ROOT } from "./quickstart_run.ts";

const SOURCE = `${ROOT}bench/peers/dbos`;
const INSTALLED = `${ROOT}.holdfast/bench/dbos`;

export class DbosPeer {
  readonly #child: Deno.ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#lines = lines(child.stdout);
    this.#stdin = child.stdin.getWriter();
  }

  /** Installs what its lock file says, once, and starts it on an empty database. */
  static async start(database: string): Promise<DbosPeer> {
    await install();
    const child = new Deno.Command("node", {
      args: ["--no-deprecation", "steps.mjs"],
      cwd: INSTALLED,
      env: { BENCH_DATABASE: database },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const peer = new DbosPeer(child);
    await peer.#answer();
    return peer;
  }

  /** Steps per second of workflows that start together. */
  async stepsPerSecond(
    { workflows, steps }: { workflows: number; steps: number },
  ): Promise<number> {
    await this.#stdin.write(new TextEncoder().encode(`${JSON.stringify({ workflows, steps })}\n`));
    const { seconds } = await this.#answer() as { seconds: number };
    return workflows * steps / seconds;
  }

  async stop(): Promise<void> {
    await this.#stdin.close();
    await this.#child.status;
  }

  /** Its next line that is JSON; it logs in between. */
  async #answer(): Promise<unknown> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) {
        throw new Error("Cannot measure DBOS because its process has ended: what it said is above");
      }
      if (value.startsWith("{")) return JSON.parse(value);
    }
  }
}

async function* lines(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (text + chunk).split("\n");
    text = parts.pop()!;
    yield* parts;
  }
}

async function install(): Promise<void> {
  await Deno.mkdir(INSTALLED, { recursive: true });
  const lock = await Deno.readTextFile(`${SOURCE}/package-lock.json`);
  const before = await Deno.readTextFile(`${INSTALLED}/package-lock.json`).catch(() => "");
  for (const file of ["package.json", "steps.mjs"]) {
    await Deno.copyFile(`${SOURCE}/${file}`, `${INSTALLED}/${file}`);
  }
  if (before === lock) return;
  await Deno.copyFile(`${SOURCE}/package-lock.json`, `${INSTALLED}/package-lock.json`);
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["ci", "--no-audit", "--no-fund"],
    cwd: INSTALLED,
    stdin: "null",
    stderr: "piped",
  }).output();
  if (success) return;
  await Deno.remove(`${INSTALLED}/package-lock.json`); // The next start tries again.
  throw new Error(`Cannot install the peer DBOS: npm ci says\n${new TextDecoder().decode(stderr)}`);
}
