/**
 * A large value on its way through the engine: the output of one stage, recorded, and the input of
 * another, on SQLite with synchronous=FULL.
 */
import { z } from "zod";
import { ArtifactStore, defineStage, Engine, graph, SqliteStore } from "../engine/mod.ts";
import { numberFlags, rounded as round } from "./quickstart_run.ts";

type Measured = Record<string, number | null>;

/** `args`: `--mb N`, the length of the value's JSON in 1e6 bytes. */
export async function benchPayloads(args: readonly string[]): Promise<Measured> {
  const { mb } = numberFlags(args, { mb: 100 });
  const kinds = { text: textOf, numbers: numbersOf, rows: rowsOf };
  const measured: Measured[] = [];
  for (const [name, make] of Object.entries(kinds)) {
    measured.push(await passed(name, make(mb * 1e6)));
  }
  return Object.assign({}, ...measured, { peak_mb: peakMb() });
}

const textOf = (bytes: number) => "0123456789".repeat(bytes / 10);
const numbersOf = (bytes: number) =>
  Array.from({ length: bytes / 9.8 }, (_, i) => i * 7919 % 1e8 / 1000);
const rowsOf = (bytes: number) =>
  Array.from({ length: bytes / 196 }, (_, i) => ({
    id: `row-${i}`,
    prompt: "What is the answer to this question? ".repeat(4),
    draw: i,
    right: i % 2 === 0,
  }));

/** The most memory that this process had, the values and what waits for collection included. */
function peakMb(): number | null {
  const found = /^VmHWM:\s+(\d+) kB/m.exec(Deno.readTextFileSync("/proc/self/status"));
  return found ? round(Number(found[1]) / 1e3) : null;
}

/** MB/s of JSON itself, written and parsed once by the same engine: no way through ours is faster. */
function jsonAlone(value: unknown): number | null {
  const began = performance.now();
  const text = JSON.stringify(value);
  JSON.parse(text);
  return round(text.length / 1e3 / (performance.now() - began));
}

/** MB/s from a body's return to the start of the next one, durable in between. */
async function passed(name: string, value: unknown): Promise<Measured> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  try {
    const store = new SqliteStore(`${dir}/journal.db`);
    const engine = new Engine({ store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
    const at = { output: 0, input: 0 };
    const common = { version: 1, output: z.any(), runs_on: "engine" } as const;
    const make = defineStage({
      ...common,
      name: "make",
      input: z.strictObject({}),
      run: () => {
        at.output = performance.now();
        return value;
      },
    });
    const read = defineStage({
      ...common,
      name: "read",
      input: z.strictObject({ value: z.any() }),
      run: () => {
        at.input = performance.now();
        return null;
      },
    });
    const definition = graph(
      "payload",
      z.strictObject({}),
      (g) => g.stage(read, { value: g.stage(make, {}) }),
    );
    await engine.create(definition, {}, { id: "run" });
    const ended = await engine.execute("run", definition.build({}));
    if (ended.status !== "done") throw new Error(`the run ended as ${ended.status}`);
    const bytes = JSON.stringify(value).length;
    await store.close();
    return {
      [`${name}_mb_per_s`]: round(bytes / 1e3 / (at.input - at.output)),
      [`${name}_json_mb_per_s`]: jsonAlone(value),
    };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}
