/**
 * One opening of a file of rows in a separate process: `data_open.ts FILE HOME READS`. Prints one
 * JSON object.
 */
import { loadRows } from "../data/mod.ts";

const KIB_PER_MIB = 1024;
const READ_TOGETHER = 64;

const [path, home, reads] = Deno.args as [string, string, string];
const begun = performance.now();
const table = await loadRows([{ path }], { home });
const opened = performance.now();
for (let at = 0; at < Number(reads); at += READ_TOGETHER) {
  const count = Math.min(READ_TOGETHER, Number(reads) - at);
  await table.rows(Array.from({ length: count }, () => Math.floor(Math.random() * table.size)));
}
const read = performance.now();
const peak = /^VmHWM:\s+(\d+) kB$/m.exec(Deno.readTextFileSync("/proc/self/status"))![1];
console.log(JSON.stringify({
  rows: table.size,
  open_s: (opened - begun) / 1000,
  read_s: (read - opened) / 1000,
  peak_mib: Number(peak) / KIB_PER_MIB,
}));
