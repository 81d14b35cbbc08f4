/** Preparations whose engines die: a home in memory, files to read, and what they write. */
import { strictEqual } from "node:assert/strict";
import { PrepareConfig } from "../../../../configs/mod.ts";
import { ArtifactStore, Engine, type Outcome, provide, sha256Hex } from "../../../../engine/mod.ts";
import {
  Crashed,
  fakeRun,
  FakeTrainer,
  MemoryStore,
  type MemoryStoreOptions,
} from "../../../../testing/mod.ts";
import { Paths, PreparedCard, type PreparedData } from "../../../../flows/mod.ts";
import { prepare } from "../../../../flows/prepare.ts";
import { watched } from "../../crashes/deaths.ts";
import { scratch } from "../../fixtures.ts";

const OWNER = { home: "h", store: "s", run: "run", place: "/home" };

/** Files by name; values that are no text are rows of JSON lines. */
export async function writeFiles(
  dir: string,
  files: Record<string, string | Uint8Array | readonly object[]>,
): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = `${dir}/${name}`;
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    if (content instanceof Uint8Array) await Deno.writeFile(path, content);
    else await Deno.writeTextFile(path, typeof content === "string" ? content : lines(content));
  }
}

function lines(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

/** A directory with files, and a preparation of them that writes to `out` in it. */
export class Preparing {
  readonly moments = new Set<string>();
  /** Engines that died. */
  deaths = 0;
  /** Of the last engine. */
  trainer: FakeTrainer | null = null;
  #store = new MemoryStore();

  private constructor(readonly dir: string, readonly config: PrepareConfig) {}

  static async of(
    files: Parameters<typeof writeFiles>[1],
    config: Record<string, unknown>,
  ): Promise<Preparing> {
    const dir = await scratch();
    await writeFiles(dir, files);
    const there = JSON.parse(
      JSON.stringify({ output: "DIR/out", ...config }).replaceAll("DIR", dir),
    );
    return new Preparing(dir, PrepareConfig.parse({ flow: "prepare", seed: 3, ...there }));
  }

  /** Of a configuration whose files are there. */
  static async from(dir: string, config: PrepareConfig): Promise<Preparing> {
    await Deno.mkdir(dir, { recursive: true });
    return new Preparing(dir, config);
  }

  /** Runs engine after engine: each dies as it should, and the last one ends the run. */
  async run(
    { deaths = [], slots = 4, refuses }: {
      deaths?: readonly MemoryStoreOptions[];
      slots?: number;
      /** The id of a row that the model's template cannot write. */
      refuses?: string;
    } = {},
  ): Promise<Outcome<PreparedData>> {
    for (const death of deaths) {
      try {
        await this.#engine({ death, slots, refuses });
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
        this.deaths++;
      }
    }
    return await this.#engine({ death: watched(this.moments), slots, refuses });
  }

  /** What a run that must be done returns. */
  async done(options: Parameters<Preparing["run"]>[0] = {}): Promise<PreparedData> {
    const outcome = await this.run(options);
    strictEqual(outcome.status, "done", JSON.stringify(outcome));
    return (outcome as Extract<typeof outcome, { status: "done" }>).output;
  }

  /** Why a run fails. */
  async failure(options: Parameters<Preparing["run"]>[0] = {}): Promise<string> {
    const outcome = await this.run(options);
    strictEqual(outcome.status, "failed", JSON.stringify(outcome));
    return (outcome as Extract<typeof outcome, { status: "failed" }>).error.message;
  }

  get out(): string {
    return this.config.output;
  }

  async card(): Promise<PreparedCard> {
    return PreparedCard.parse(JSON.parse(await Deno.readTextFile(`${this.out}/card.json`)));
  }

  /**
   * The digest of every file of the output. Without hidden ones: what an engine that is taken for
   * dead still writes in this process.
   */
  async digests(): Promise<Record<string, string>> {
    const names = (await this.names()).filter((name) => !name.startsWith("."));
    const digests = await Promise.all(
      names.map(async (name) => [
        name,
        sha256Hex(await Deno.readFile(`${this.out}/${name}`)),
      ]),
    );
    return Object.fromEntries(digests);
  }

  /** The names in the output. */
  async names(): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(this.out), ({ name }) => name)).toSorted();
  }

  async #engine(
    { death, slots, refuses }: {
      death: MemoryStoreOptions;
      slots: number;
      refuses: string | undefined;
    },
  ): Promise<Outcome<PreparedData>> {
    const { dir } = this;
    const store = this.#store = this.#store.restarted(death);
    const artifacts = new ArtifactStore(`${dir}/artifacts`);
    const trainer = this.trainer = new FakeTrainer({ artifacts, refuses });
    const fake = await fakeRun({ store, run: "run", artifacts, dir, rows: {}, trainer });
    const others = fake.resources.filter(({ name }) => name !== Paths.name);
    const paths = { home: dir, owner: OWNER, run: `${dir}/run`, checkpoints: "", publications: "" };
    const engine = new Engine({
      store,
      artifacts,
      resources: [...others, provide(Paths, paths)],
      slots: { data: slots },
      backoff: { first_ms: 0, max_ms: 0 },
    });
    if (await store.head("run") === null) await engine.create(prepare, this.config, { id: "run" });
    return await engine.execute("run", prepare.build(this.config)) as Outcome<PreparedData>;
  }
}
