import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { rowTables } from "../../../runs/mod.ts";
import { onlineConfig, scratch, smallQuickstart } from "../../flows/fixtures.ts";

const home = await scratch();

async function written(...rows: object[]): Promise<string> {
  const path = `${await scratch()}/rows.jsonl`;
  await Deno.writeTextFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return path;
}

Deno.test("rowTables() makes the rows that a task trains and evaluates on", async () => {
  const tables = await rowTables(smallQuickstart({ rounds: 1, every_rounds: 1 }), { home });
  deepStrictEqual(Object.keys(tables).toSorted(), ["eval", "train"]);
  strictEqual(tables.eval!.size, 2);
});

Deno.test("rowTables() reads the files of a configuration, by split", async () => {
  const [train, held] = [
    await written({ prompt: "a" }, { prompt: "b" }),
    await written({ prompt: "c" }),
  ];
  const config = onlineConfig("/model", {
    data: { train: [{ path: train }], eval: [{ path: held }] },
    evaluate: {},
  });
  const tables = await rowTables(config, { home });
  deepStrictEqual(tables.train!.size, 2);
  deepStrictEqual(Object.values(tables).map(({ size }) => size).toSorted(), [1, 2]);
});

Deno.test("rowTables() has no rows without a task and without files", async () => {
  deepStrictEqual(await rowTables({}, { home }), {});
});

Deno.test("rowTables() refuses a row without what its flow learns from", async () => {
  const train = [{ path: await written({ prompt: "a" }) }];
  const config = { flow: "preference", data: { train } } as never;
  await rejects(rowTables(config, { home }), { name: "DataError" });
});

Deno.test("rowTables() reads labels where the algorithm learns from them", async () => {
  const path = await written({ prompt: "a", completion: "b", label: 0 });
  const data = { train: [{ path }], eval: [{ path }] };
  const tablesOf = (name: string) =>
    rowTables({ flow: "preference", data, algorithm: { name }, evaluate: {} } as never, { home });
  const { train, eval: held } = await tablesOf("kto");
  const rows = [...await train!.rows([0]), ...await held!.rows([0])];
  deepStrictEqual(rows.map(({ label }) => label), [false, false]);
  await rejects(tablesOf("dpo"), { name: "DataError" });
});
