/**
 * Seconds and peak memory of opening rows, first and again, beside Hugging Face `datasets`: each
 * opening is a separate process, on the same file.
 */
import { writeAll } from "../data/mod.ts";
import { commandOutput, numberFlags, ROOT, rounded, trlPython } from "./quickstart_run.ts";

type Timing = { rows: number; open_s: number; read_s: number; peak_mib: number };
type Measured = Record<string, number | null>;
type Sizes = { name: string; rows: number; reads: number; python: string };

const WRITTEN_TOGETHER = 10_000;
/** How the rows are written, besides JSON lines. */
const FORMATS = ["csv", "parquet"] as const;

/** `args`: `--small N --middle N --large N` rows, and `--reads N` of rows at random places. */
export async function benchData(args: readonly string[]): Promise<Measured> {
  const { reads, ...sizes } = numberFlags(args, {
    small: 10_000,
    middle: 1_000_000,
    large: 10_000_000,
    reads: 1024,
  });
  const python = await trlPython();
  const measured: Measured = { reads };
  for (const [name, rows] of Object.entries(sizes)) {
    Object.assign(measured, await benchSize({ name, rows, reads, python }));
  }
  const ratio = (format: string) => {
    const [small, large] = ["small", "large"].map((size) => measured[`${size}_${format}peak_mib`]);
    return rounded((large ?? NaN) / (small ?? NaN));
  };
  return {
    ...measured,
    memory_ratio: ratio("first_"),
    ...Object.fromEntries(FORMATS.map((one) => [`memory_ratio_${one}`, ratio(`${one}_first_`)])),
  };
}

async function benchSize({ name, rows, reads, python }: Sizes): Promise<Measured> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  const measured: Measured = { [`${name}_rows`]: rows };
  const add = (side: string, { open_s, read_s, peak_mib }: Timing) => {
    measured[`${name}_${side}_open_s`] = rounded(open_s);
    measured[`${name}_${side}_read_s`] = rounded(read_s);
    measured[`${name}_${side}_peak_mib`] = rounded(peak_mib);
  };
  const opening = async (path: string) => {
    const script = `${ROOT}bench/data_open.ts`;
    const command = ["run", "-A", "--quiet", script, path, `${dir}/home`, String(reads)];
    return await timing(Deno.execPath(), command);
  };
  try {
    const path = `${dir}/rows.jsonl`;
    await writeRows(path, { rows });
    add("first", await opening(path));
    add("again", await opening(path));
    const peer = [`${ROOT}bench/peers/datasets_open.py`, path, `${dir}/peer`, String(reads)];
    add("peer", await timing(python, peer));
    await Deno.remove(`${dir}/peer`, { recursive: true });
    for (const format of FORMATS) {
      const other = `${dir}/rows.${format}`;
      if (format === "csv") await writeRows(other, { rows, line: asCsv });
      else await commandOutput(python, [`${ROOT}bench/peers/as_parquet.py`, path, other]);
      add(`${format}_first`, await opening(other));
      add(`${format}_again`, await opening(other));
      await Deno.remove(`${dir}/home`, { recursive: true });
    }
    return measured;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function timing(command: string, args: string[]): Promise<Timing> {
  const text = await commandOutput(command, args);
  return JSON.parse(text.trim().split("\n").at(-1)!) as Timing;
}

type BenchRow = { id: number; question: string; answer: string };

const asJson = (row: BenchRow) => JSON.stringify(row);

function asCsv({ id, question, answer }: BenchRow): string {
  const header = id === 0 ? "id,question,answer\n" : "";
  return `${header}${id},"${question}","${answer}"`;
}

/** Rows shaped like GSM8K's: a question and a worked answer. */
async function writeRows(
  path: string,
  { rows, line = asJson }: { rows: number; line?: (row: BenchRow) => string },
): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true });
  const encoder = new TextEncoder();
  for (let from = 0; from < rows; from += WRITTEN_TOGETHER) {
    const count = Math.min(WRITTEN_TOGETHER, rows - from);
    const text = Array.from({ length: count }, (_, i) => {
      const id = from + i;
      const question = `Ann has ${id} apples and buys ${id % 97} more. How many has she now?`;
      const answer = `${id} + ${id % 97} = ${id + id % 97}\n#### ${id + id % 97}`;
      return `${line({ id, question, answer })}\n`;
    }).join("");
    await writeAll(file, encoder.encode(text));
  }
}
