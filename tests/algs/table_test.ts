import { deepStrictEqual } from "node:assert/strict";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  ONLINE_ALGORITHMS,
  PREFERENCE_ALGORITHMS,
  SUPERVISED_ALGORITHMS,
  traceAlgorithm,
} from "../../algs/mod.ts";

Deno.test("every algorithm is in the table under its own name", () => {
  for (const [name, algorithm] of Object.entries(ALGORITHMS)) deepStrictEqual(algorithm.name, name);
});

Deno.test("an algorithm is in the table of the flow that has what it learns from", () => {
  const online = Object.values<AnyAlgorithm>(ONLINE_ALGORITHMS);
  deepStrictEqual(online.filter(({ credit }) => credit === undefined), []);
  const rows = Object.values<AnyAlgorithm>({ ...SUPERVISED_ALGORITHMS, ...PREFERENCE_ALGORITHMS });
  deepStrictEqual(rows.filter(({ credit }) => credit !== undefined), []);
  const preferring = Object.values<AnyAlgorithm>(ALGORITHMS).filter((algorithm) => {
    const { inputs, nodes } = traceAlgorithm(algorithm, {}).loss;
    return inputs.includes("label") || nodes.some(({ kind }) => kind === "pair");
  });
  deepStrictEqual(preferring.map(({ name }) => name), Object.keys(PREFERENCE_ALGORITHMS));
});

/** A column of verl's rows has the name of an algorithm. */
const COLUMN = {
  read_below: "workers/python/holdfast_worker/rewards/styles/",
  is: "reward_model",
};

Deno.test("an algorithm is a file and a line of the table: only profiles name it too", async () => {
  const root = new URL("../../", import.meta.url);
  const names = Object.keys(ALGORITHMS).map((name) =>
    new RegExp(`["'\`]${name}["'\`]|\\b${name}\\b(?=[.(])`)
  );
  const named: string[] = [];
  for (const room of ["algs/", "workers/", "engine/"]) {
    for await (const file of sources(new URL(room, root))) {
      const path = file.pathname.slice(root.pathname.length);
      const isListed = path === "algs/table.ts" || path === "algs/profiles/profiles.ts" ||
        path === "algs/profiles/trl_profile.ts" ||
        Object.keys(ALGORITHMS).some((name) => path === `algs/${name}.ts`);
      const whole = await Deno.readTextFile(file);
      const text = path.startsWith(COLUMN.read_below)
        ? whole.replaceAll(`"${COLUMN.is}"`, "")
        : whole;
      if (!isListed && names.some((name) => name.test(text))) named.push(path);
    }
  }
  deepStrictEqual(named, []);
});

async function* sources(folder: URL): AsyncGenerator<URL> {
  for await (const entry of Deno.readDir(folder)) {
    if (entry.isDirectory && !entry.name.startsWith("__")) {
      yield* sources(new URL(`${entry.name}/`, folder));
    }
    if (entry.isFile && /\.(ts|py)$/.test(entry.name)) yield new URL(entry.name, folder);
  }
}
