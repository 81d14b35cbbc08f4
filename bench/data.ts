/**
 * Seconds and peak memory of opening rows, first and again, beside Hugging Face `datasets`: each
 * opening is a separate process, on the same file.
 */
import { writeAll } from "../data/mod.ts";
import { commandOutput, numberFlags, ROOT, rounded, trlPython } from "./quickstart_run.ts";

type Told = { rows: number; open_s: number; read_s: number; peak_mib: number };
const WRITTEN_TOGETHER = 10_000;

/** `args`: `--small N --middle N --large N` rows, and `--reads N` of rows at random places. */
export async function benchData(
  args: readonly string[],
): Promise<Record<string, number | null>> {
  const { reads, ...sizes } = numberFlags(args, {
    small: 10_000,
    middle: 1_000_000,
    large: 10_000_000,
    reads: 1024,
  });
  const python = await trlPython();
  const measured: Record<string, number | null> = { reads };
  for (const [name, rows] of Object.entries(sizes)) {
    const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
    try {
      const path = `${dir}/rows.jsonl`;
      await writeRows(path, rows);
      const own = ["run", "-A", "--quiet", `${ROOT}bench/data_open.ts`, path, dir, String(reads)];
      const first = await told(Deno.execPath(), own);
      const again = await told(Deno.execPath(), own);
      const peer_args = [`${ROOT}bench/peers/datasets_open.py`, path, `${dir}/peer`, String(reads)];
      const peer = await told(python, peer_args);
      Object.assign(measured, { [`${name}_rows`]: rows });
      for (const [side, { open_s, read_s, peak_mib }] of Object.entries({ first, again, peer })) {
        measured[`${name}_${side}_open_s`] = rounded(open_s);
        measured[`${name}_${side}_read_s`] = rounded(read_s);
        measured[`${name}_${side}_peak_mib`] = rounded(peak_mib);
      }
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  }
  const [small, large] = [measured.small_first_peak_mib, measured.large_first_peak_mib];
  return { ...measured, memory_ratio: rounded((large ?? NaN) / (small ?? NaN)) };
}

async function told(command: string, args: string[]): Promise<Told> {
  const text = await commandOutput(command, args);
  return JSON.parse(text.trim().split("\n").at(-1)!) as Told;
}

/** Rows shaped like GSM8K's: a question and a worked answer. */
async function writeRows(path: string, rows: number): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true });
  const encoder = new TextEncoder();
  for (let from = 0; from < rows; from += WRITTEN_TOGETHER) {
    const count = Math.min(WRITTEN_TOGETHER, rows - from);
    const text = Array.from({ length: count }, (_, i) => {
      const n = from + i;
      const question = `Ann has ${n} apples and buys ${n % 97} more. How many has she now?`;
      const answer = `${n} + ${n % 97} = ${n + n % 97}\n#### ${n + n % 97}`;
      return `${JSON.stringify({ id: n, question, answer })}\n`;
    }).join("");
    await writeAll(file, encoder.encode(text));
  }
}
