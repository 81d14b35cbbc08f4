import { ok, strictEqual } from "node:assert/strict";
import { processOf, RewardConfig, scoringFunctions } from "../../rewards/mod.ts";

const ROOT = new URL("../../", import.meta.url);
const page = await Deno.readTextFile(new URL("docs/rewards.md", ROOT));
const pool = await Deno.readTextFile(
  new URL("workers/python/holdfast_worker/rewards/pool_process.py", ROOT),
);

Deno.test("the page on rewards has every process setting with its default", () => {
  const [python] = scoringFunctions([
    RewardConfig.parse({ name: "python", source: "a.py:f" }),
  ]);
  for (
    const [name, value] of Object.entries({ timeout_ms: python!.timeout_ms, ...processOf({}) })
  ) {
    const shown = typeof value === "number" ? String(value) : `\`${JSON.stringify(value)}\``;
    ok(page.includes(`| \`${name}\` | ${shown} |`), `${name}: ${shown}`);
  }
});

Deno.test("the page on rewards names every environment variable that user code inherits", () => {
  const table = pool.slice(pool.indexOf("INHERITED = {"), pool.indexOf("Item = "));
  const [names, prefixes] = table.split("INHERITED_PREFIXES");
  const quoted = (text: string) => [...text.matchAll(/"([A-Z_]+)"/g)].map((match) => match[1]!);
  strictEqual(quoted(names!).length > 20, true);
  for (const name of quoted(names!)) ok(page.includes(`\`${name}\``), name);
  for (const prefix of quoted(prefixes!)) ok(page.includes(`\`${prefix}*\``), prefix);
});

Deno.test("the pages say what code in workers can read", async () => {
  const store = await Deno.readTextFile(new URL("docs/store.md", ROOT));
  const text = (page: string) => page.replaceAll(/\s+/g, " ");
  // What they say is held by `read_hub` and `find_secrets` of tests/python/rewards/hostile/hostile_rewards.py.
  ok(
    text(page).includes(
      "it can read and write every file that you can: the home's database, its checkpoints, and `hub.json`",
    ),
  );
  ok(text(store).includes("But workers run as you: code in them"));
  ok(
    text(store).includes(
      "can read the engine's environment and command line in `/proc`, and, even if isolated, the run's token in `hub.json`",
    ),
  );
});

Deno.test("processOf() keeps what is said, null too, and refuses the store's variables", () => {
  const { memory_gib, cpu_s, env } = processOf({ memory_gib: null, env: ["HF_TOKEN"] });
  strictEqual(JSON.stringify([memory_gib, cpu_s, env]), `[null,60,["HF_TOKEN"]]`);
  for (const name of ["HOLDFAST_STORE", "PGPASSWORD", "DATABASE_URL", "A=B"]) {
    strictEqual(
      RewardConfig.safeParse({ name: "python", source: "a.py:f", env: [name] }).success,
      false,
      name,
    );
  }
});

Deno.test("a recorded reward in Python keeps its fields: the hash of a stage's input stays", () => {
  const recorded = { name: "python", weight: 1, source: "/a.py:f", timeout_ms: 10_000 };
  strictEqual(JSON.stringify(RewardConfig.parse(recorded)), JSON.stringify(recorded));
});
