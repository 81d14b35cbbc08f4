/** A PostgreSQL of the test's own, to be stopped, restarted and killed at will. */
import { runToFile } from "./spawn_to_file.ts";

type StopMode = "fast" | "immediate";

/**
 * Its own directory and port on 127.0.0.1; no password. `initdb` refuses root, so root runs it as
 * the user `postgres`.
 */
export class PostgresCluster {
  private constructor(readonly dir: string, readonly port: number, readonly bin: string) {}

  /** Makes a cluster and starts it. @throws {Error} With what its tools said. */
  static async start(settings: Record<string, string> = {}): Promise<PostgresCluster> {
    const dir = await Deno.makeTempDir({ prefix: "holdfast-postgres-" });
    const cluster = new PostgresCluster(dir, freePort(), await binaries());
    if (Deno.uid() === 0) await run("chown", ["postgres", dir]);
    await cluster.#tool("initdb", [
      "-D",
      `${dir}/data`,
      "-U",
      "postgres",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--no-sync",
    ]);
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`).join(
      "",
    );
    await Deno.writeTextFile(`${dir}/data/postgresql.conf`, lines, { append: true });
    await cluster.start();
    return cluster;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** Settles when it takes connections. */
  async start(): Promise<void> {
    const options = `-p ${this.port} -k ${this.dir} -c listen_addresses=127.0.0.1`;
    for (let tries = 20;; tries--) {
      try {
        await this.#tool("pg_ctl", [
          "-D",
          `${this.dir}/data`,
          "-l",
          `${this.dir}/log`,
          "-o",
          options,
          "-w",
          "start",
        ]);
        return;
      } catch (error) {
        if (tries === 0) {
          throw new Error(await Deno.readTextFile(`${this.dir}/log`), { cause: error });
        }
        // What was killed holds its memory a little longer.
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /**
   * `fast` ends every session and writes a checkpoint; `immediate` leaves at once and recovers at
   * the next start.
   */
  async stop(mode: StopMode = "fast"): Promise<void> {
    await this.#tool("pg_ctl", ["-D", `${this.dir}/data`, "-m", mode, "-w", "stop"]);
  }

  async restart(mode: StopMode = "fast"): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** SIGKILL to every process of the server, as a machine that loses its power does. */
  async kill(): Promise<void> {
    const [postmaster] = (await Deno.readTextFile(`${this.dir}/data/postmaster.pid`)).split("\n")
      .map(Number);
    const children = (await run("ps", ["-o", "pid=", "--ppid", `${postmaster}`])).split("\n").map(
      Number,
    );
    for (const pid of [postmaster!, ...children]) if (pid > 0) signal(pid, "SIGKILL");
    await Deno.remove(`${this.dir}/data/postmaster.pid`);
  }

  /** Stops it, whatever state it is in, and removes it. */
  async dispose(): Promise<void> {
    await this.stop("immediate").catch(() => {}); // It may be down.
    await Deno.remove(this.dir, { recursive: true });
  }

  async #tool(name: string, args: string[]): Promise<string> {
    const command = [`${this.bin}/${name}`, ...args];
    if (Deno.uid() === 0) command.unshift("runuser", "-u", "postgres", "--");
    return await run(command[0]!, command.slice(1));
  }
}

/** Debian keeps the server's programs off the PATH. */
async function binaries(): Promise<string> {
  const base = "/usr/lib/postgresql";
  const versions: number[] = [];
  try {
    for await (const { name } of Deno.readDir(base)) versions.push(Number(name));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const newest = versions.filter(Number.isInteger).sort((a, b) => b - a)[0];
  if (newest !== undefined) return `${base}/${newest}/bin`;
  return (await run("pg_config", ["--bindir"])).trim();
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

async function run(command: string, args: string[]): Promise<string> {
  // The server keeps open what it inherits.
  const { code, output } = await runToFile([command, ...args], { cwd: "/", env: {} });
  if (code === 0) return output;
  throw new Error(`Cannot run ${command} ${args.join(" ")}: it ended with ${code}:\n${output}`);
}

function signal(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(pid, name);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // It is gone already.
  }
}
