import { deepStrictEqual, rejects } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { namedRows } from "../../../runs/trials/named_rows.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

async function sizes(path: string, overrides?: string[]): Promise<[string | null, number][]> {
  const home = await Deno.makeTempDir();
  try {
    const named = await namedRows(path, { home, overrides });
    return named.map(({ split, table }) => [split, table.size]);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("namedRows() reads a data file, or each split of a configuration", async () => {
  deepStrictEqual(await sizes(`${ROOT}examples/sorting.jsonl`), [[null, 4]]);
  const rows = `data.train=[{path: ${ROOT}examples/sorting.jsonl}]`;
  deepStrictEqual(
    await sizes(`${ROOT}configs/gsm8k_grpo.yaml`, [rows, "data.eval=[]", "evaluate=null"]),
    [
      ["train", 4],
    ],
  );
});

Deno.test("namedRows() refuses overrides of a data file", async () => {
  await rejects(sizes(`${ROOT}examples/sorting.jsonl`, ["seed=1"]), /is a data file\. Fix: leave/);
});
