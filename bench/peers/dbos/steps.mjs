/**
 * Durable steps of DBOS on PostgreSQL, with its defaults (a pool of 10 connections). Reads one JSON line per measurement,
 * `{ "workflows": 1, "steps": 1000 }`, and answers with `{ "seconds": s }` from the first start to the last result.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { DBOS } from "@dbos-inc/dbos-sdk";

const chain = DBOS.registerWorkflow(async (steps) => {
  let sum = 0;
  for (let i = 0; i < steps; i++) sum += await DBOS.runStep(() => Promise.resolve(i), { name: "step" });
  return sum;
}, { name: "chain" });

DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: process.env.BENCH_DATABASE,
  logLevel: "error",
  runAdminServer: false,
});
await DBOS.launch();
console.log(JSON.stringify({ ready: true }));

for await (const line of createInterface({ input: process.stdin })) {
  const { workflows, steps } = JSON.parse(line);
  const began = performance.now();
  const handles = await Promise.all(Array.from({ length: workflows }, () => DBOS.startWorkflow(chain)(steps)));
  const sums = await Promise.all(handles.map((handle) => handle.getResult()));
  const seconds = (performance.now() - began) / 1000;
  if (sums.some((sum) => sum !== steps * (steps - 1) / 2)) throw new Error("Cannot measure as a step was lost");
  console.log(JSON.stringify({ seconds }));
}
await DBOS.shutdown();
process.exit(0);
