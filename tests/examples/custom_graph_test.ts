import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { type JournalRow, SqliteStore } from "../../engine/mod.ts";
import { Home, runView } from "../../runs/mod.ts";
import { rl } from "../crash/runs.ts";
import { ensureTestEnvironments } from "../environments.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const EXAMPLE = "examples/custom_graph.ts";

async function deno(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number; output: string }> {
  const command = new Deno.Command(Deno.execPath(), {
    args,
    cwd: ROOT,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, output: text.decode(stdout) + text.decode(stderr) };
}

async function withHome(body: (home: string) => Promise<void>): Promise<void> {
  await ensureTestEnvironments();
  const home = await Deno.makeTempDir({ prefix: "holdfast-example-" });
  try {
    await body(home);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

async function journal(
  home: string,
  kinds: ("intent" | "result" | "round")[],
): Promise<JournalRow[]> {
  const store = new SqliteStore(`${home}/holdfast.db`);
  try {
    return await store.read("gated", { kinds });
  } finally {
    await store.close();
  }
}

async function view(home: string) {
  const open = Home.open(home);
  try {
    return await runView(open.store, (await open.store.head("gated"))!, {
      workers: [],
      metrics: {},
    });
  } finally {
    await open.close();
  }
}

/** What the gate returned, round by round. */
async function champions(home: string): Promise<{ best: number; version: string }[]> {
  const promoted = (await journal(home, ["result"])).filter(({ key }) => key.endsWith("/promote"));
  return promoted.map(({ value }) => JSON.parse(value).output)
    .map(({ best, champion }) => ({ best, version: champion.version }));
}

/** The best evaluation up to each round: what a gate that works must have returned. */
async function heights(home: string): Promise<number[]> {
  const summaries = (await journal(home, ["result"])).filter(({ key }) =>
    key.endsWith("/summarise_evaluation")
  );
  const rewards = summaries.map(({ value }) => JSON.parse(value).output.mean_reward as number);
  return rewards.map((_, i) => Math.max(0, ...rewards.slice(0, i + 1)));
}

Deno.test("custom_graph.ts is as short as README says and imports only holdfast", async () => {
  const text = await Deno.readTextFile(`${ROOT}${EXAMPLE}`);
  const readme = await Deno.readTextFile(`${ROOT}README.md`);
  const claimed = /promotion gate in (\d+) lines/.exec(readme)?.[1];
  strictEqual(Number(claimed), text.trimEnd().split("\n").length);
  deepStrictEqual([...text.matchAll(/from "([^"]+)"/g)].map((match) => match[1]), ["holdfast"]);
  const checked = await deno(["check", "--quiet", EXAMPLE]);
  strictEqual(checked.code, 0, checked.output);
});

Deno.test("custom_graph.ts, killed and resumed, ends as it would and redoes nothing", async () => {
  await withHome(async (home) => {
    const killed = await deno(["run", "-A", EXAMPLE, home], {
      HOLDFAST_FAULT: "kill:engine@append:30",
    });
    strictEqual(killed.code, 137, killed.output);
    const finished = new Set((await journal(home, ["result"])).map(({ key }) => key));
    const closed = (await journal(home, ["round"])).length;
    ok(
      closed >= 1 && closed < 4,
      `the kill was meant for the middle of the run, and ${closed} rounds had closed`,
    );

    const resumed = await rl(["resume", "gated", "--home", home], {});
    strictEqual(resumed.code, 0, resumed.output);
    const started = await journal(home, ["intent"]);
    ok(started.some(({ key, epoch }) => epoch === 1 && finished.has(key)), "starts are recorded");
    deepStrictEqual(
      started.filter(({ key, epoch }) => epoch > 1 && finished.has(key)).map(({ key }) => key),
      [],
    );

    await withHome(async (calm) => {
      const run = await deno(["run", "-A", EXAMPLE, calm]);
      strictEqual(run.code, 0, run.output);
      ok(run.output.includes('status: "done"'), run.output);
      deepStrictEqual(await champions(home), await champions(calm));
      deepStrictEqual((await champions(calm)).map(({ best }) => best), await heights(calm));
      deepStrictEqual((await view(home)).ledger, (await view(calm)).ledger);
    });
  });
});
