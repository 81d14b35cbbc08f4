/**
 * Commands on rows of a hub: previewed, scored, planned, fetched, and prepared by a run that is
 * killed and resumed after the hub has newer rows, cannot be reached, and the cache has moved.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { FakeModelHub } from "../../testing/mod.ts";
import { at, recorded, rl, withFreshHome } from "../crash/runs.ts";

const rows = (from: number) =>
  Array.from(
    { length: 40 },
    (_, n) => `{"id":"${from + n}","prompt":"${from + n} + 0","answer":"${from + n}"}\n`,
  ).join("");
const files = (from: number) => ({
  "README.md": "---\nconfigs:\n- config_name: main\n  data_files:\n" +
    "  - { split: train, path: 'train-*' }\n  - { split: test, path: held.jsonl }\n---\n",
  "train-1.jsonl": rows(from),
  "train-2.jsonl": rows(from + 40),
  "held.jsonl": rows(from + 900),
});
const ROWS = "hf://datasets/owner/rows";
const CONFIG = `flow: prepare
output: OUT
inputs: [{ path: "${ROWS}?split=train" }]
decontaminate: { sets: [{ path: "${ROWS}@main?split=test" }] }
`;

async function outputs(dir: string): Promise<Record<string, string>> {
  const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
  const data = names.filter((name) => name.endsWith(".parquet")).sort();
  return Object.fromEntries(
    await Promise.all(data.map(async (name) => [name, `${await Deno.readFile(`${dir}/${name}`)}`])),
  );
}

Deno.test("rows of the hub are seen, scored, planned and fetched by their name", () =>
  withFreshHome(async (home) => {
    await using hub = new FakeModelHub();
    const env = { HF_ENDPOINT: hub.url, HF_HOME: `${home}/hf`, HF_TOKEN: "secret" };
    const place = at({ home, store: null });
    const config = `${home}/rows.yaml`;
    await Deno.writeTextFile(config, CONFIG.replace("OUT", "planned"));
    const planned = await rl(["plan", config, ...place], env);
    match(
      planned.output,
      RegExp(`^data +inputs\\.0\\.path: ${ROWS}@main\\?split=train of the hub`, "m"),
    );
    deepStrictEqual(hub.lines, []);
    const commit = hub.put("datasets/owner/rows", files(0));
    const shown = await rl(["data", "preview", `${ROWS}?split=train`, "-n", "1", ...place], env);
    strictEqual(shown.code, 0, shown.output);
    match(shown.output, /split=train: 80 rows, digest/);
    match(shown.output, /snapshots\/[0-9a-f]{40}\/train-1\.jsonl \(json_lines, 40 rows\)/);
    const scored = await rl(
      ["reward", "test", "exact_match", "--data", `${ROWS}?split=test`, "-n", "3", ...place],
      env,
    );
    strictEqual(scored.code, 0, scored.output);
    match(scored.output, /3 rows, 0 failed/);
    const fetched = await rl(["fetch", config, ...place], env);
    match(fetched.output, RegExp(`${ROWS}@main@${commit}\\?split=train: 2 files, `));
    match(fetched.output, RegExp(`${ROWS}@main@${commit}\\?split=test: 1 file, `));
    const none = await rl(["data", "preview", `${ROWS}?split=val`, ...place], env);
    strictEqual(none.code, 2, none.output);
    match(none.output, /it has no split 'val'\. Fix: name one of: train, test/);
    deepStrictEqual([...new Set(hub.asked.map(({ token }) => token))], ["secret"]);
  }));

Deno.test("a preparation of the hub's rows resumes offline, at its commit, in a moved cache", () =>
  withFreshHome(async (home) => {
    const hub = new FakeModelHub();
    const commit = hub.put("datasets/owner/rows", files(0));
    const env = { HF_ENDPOINT: hub.url, HF_HOME: `${home}/hf` };
    const place = at({ home, store: null });
    const prepare = async (name: string, more: Record<string, string> = {}) => {
      await Deno.writeTextFile(`${home}/${name}.yaml`, CONFIG.replace("OUT", name));
      return await rl(["data", "prepare", `${home}/${name}.yaml`, "--id", name, ...place], {
        ...env,
        ...more,
      });
    };
    const calm = await prepare("calm");
    strictEqual(calm.code, 0, calm.output);
    const killed = await prepare("killed", { HOLDFAST_FAULT: "kill:engine@append:5" });
    strictEqual(killed.signal, "SIGKILL", killed.output);
    hub.put("datasets/owner/rows", files(500));
    await hub[Symbol.asyncDispose]();
    await Deno.rename(`${home}/hf`, `${home}/moved`);
    const resumed = await rl(["resume", "killed", ...place], { ...env, HF_HOME: `${home}/moved` });
    strictEqual(resumed.code, 0, resumed.output);
    deepStrictEqual(await outputs(`${home}/killed`), await outputs(`${home}/calm`));
    ok(Object.keys(await outputs(`${home}/calm`)).length > 0);
    const card = JSON.parse(await Deno.readTextFile(`${home}/killed/card.json`));
    strictEqual(card.recipe.inputs[0].path, `${ROWS}@main@${commit}?split=train`);
    strictEqual(card.evaluation_sets[0].name, "rows");
    const run = await recorded({ home, store: null }, "killed");
    deepStrictEqual(
      run.rows.filter(({ kind }) => kind === "note/data").map(({ key }) => key).sort(),
      ["test", "train"].map((split) => `${ROWS}@main@${commit}?split=${split}`),
    );
  }));
