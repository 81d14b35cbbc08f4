import {
  type EngineEvent,
  isNamed,
  PRIVATE_FILE,
  RemovalRefusedError,
  removeTree,
  type RunHead,
} from "../../engine/mod.ts";
import type { Home } from "../home/home.ts";
import { type FoundLine, inheritedPages, ownPages } from "./run_metrics.ts";

const NAME = "metrics.jsonl";
const BEGUN = /metrics\.jsonl\.\d+\.new/;

/**
 * Metrics of a run as files that anything can read: `metrics.jsonl`, one line per emission, and
 * `metrics.json`, the last value of each. Both repeat what the journal contains and are never read
 * back: every engine rewrites them at its start.
 */
export class MetricsFile {
  readonly #home: Home;
  readonly #head: RunHead;
  readonly #owns: (epoch: number) => Promise<boolean>;
  readonly #last: Record<string, number> = {};
  /** The file that this engine has created; null: there is none, or it could not be written. */
  #file: Deno.FsFile | null = null;
  #last_seq = 0;
  #epoch = 0;
  #closed = false;
  #tail: Promise<void> = Promise.resolve();

  /**
   * `owns`: whether the engine of this epoch still owns the run; a superseded engine writes
   * nothing.
   */
  constructor(
    home: Home,
    { head, owns }: { head: RunHead; owns: (epoch: number) => Promise<boolean> },
  ) {
    this.#home = home;
    this.#head = head;
    this.#owns = owns;
  }

  on(event: EngineEvent): void {
    if (event.type === "run_started") this.#epoch = event.epoch;
    if (event.type !== "run_started" && event.type !== "round_closed") return;
    // One turn later: by then the next round's first operation has been sent, and nothing waits for
    // files.
    setTimeout(() => void this.flush(), 0);
  }

  /** Recreates the files of an ended run. */
  static async remake(home: Home, head: RunHead): Promise<void> {
    const file = new MetricsFile(home, { head, owns: () => Promise.resolve(true) });
    file.#epoch = head.epoch;
    await file.close();
  }

  /** Writes what was recorded since the last call. A full disk costs the files, never the run. */
  flush(): Promise<void> {
    return this.#tail = this.#tail.then(() => this.#write()).catch((error) => {
      this.#letGo();
      console.error(
        `Metrics of run ${this.#head.id} could not be written: ${(error as Error).message}`,
      );
    });
  }

  /** Writes for the last time. */
  async close(): Promise<void> {
    await this.flush();
    this.#closed = true;
    this.#letGo();
  }

  async #write(): Promise<void> {
    if (this.#closed || this.#epoch === 0 || !await this.#owns(this.#epoch)) return;
    if (this.#file === null) await this.#begin();
    else await this.#appendOwn();
    this.#home.writeFact(this.#head.id, { name: "metrics.json", value: this.#last });
  }

  /**
   * Writes the whole file next to the old one, then replaces that. The file stays open: an engine
   * that was superseded in the meantime writes to its own file, which nobody sees any more.
   */
  async #begin(): Promise<void> {
    const dir = this.#home.runDir(this.#head.id);
    const path = `${dir}/${NAME}.${this.#epoch}.new`;
    this.#file = Deno.openSync(path, {
      write: true,
      create: true,
      truncate: true,
      mode: PRIVATE_FILE,
    });
    for await (const page of inheritedPages(this.#home, this.#head)) this.#append(page);
    this.#last_seq = 0; // Those were of other journals.
    await this.#appendOwn();
    Deno.renameSync(path, `${dir}/${NAME}`);
    await this.#removeBegun(dir);
  }

  /** Those that a killed engine had started. They stay in a directory that is not the home's. */
  async #removeBegun(dir: string): Promise<void> {
    const how = { home: this.#home.dir, named: BEGUN, owner: null };
    try {
      for (const { name } of [...Deno.readDirSync(dir)]) {
        if (isNamed(name, BEGUN)) await removeTree(`${dir}/${name}`, how);
      }
    } catch (error) {
      if (!(error instanceof RemovalRefusedError)) throw error;
    }
  }

  async #appendOwn(): Promise<void> {
    for await (const page of ownPages(this.#home, this.#head.id, this.#last_seq)) {
      this.#append(page);
    }
  }

  #append(page: FoundLine[]): void {
    const bytes = new TextEncoder().encode(
      page.map(({ line }) => `${JSON.stringify(line)}\n`).join(""),
    );
    for (let written = 0; written < bytes.length;) {
      written += this.#file!.writeSync(bytes.subarray(written));
    }
    for (const { seq, line } of page) {
      this.#last_seq = seq;
      Object.assign(this.#last, line.metrics);
    }
  }

  #letGo(): void {
    this.#file?.close();
    this.#file = null;
  }
}
