/** Data sets of the hub in a run's life: pinned, recorded, resumed without the hub, forked. */
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import type { OnlineConfig } from "../../../configs/mod.ts";
import type { NewRow, RunHead } from "../../../engine/mod.ts";
import { type Home, rowTables } from "../../../runs/mod.ts";
import { asPinned, pinnedData, presentData } from "../../../runs/session/hub_models.ts";
import { FakeModelHub } from "../../../testing/mod.ts";
import { createFakeRun, executeFake, fakeConfig, forkFake, freshFakeHome } from "../fake_home.ts";

const COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca";
const ROWS = "hf://datasets/owner/rows";

const rows = (from: number) =>
  Array.from({ length: 16 }, (_, n) => `{"id":"${from + n}","prompt":"p ${n}","answer":"1"}\n`)
    .join("");
const files = (from: number) => ({
  "train.jsonl": rows(from),
  "test.jsonl": rows(from + 100),
  "notes.txt": "unread",
});

const data = (train: string, evaluated: string) => ({
  data: { train: [{ path: train }], eval: [{ path: evaluated }] },
});

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
type Place = { hub: FakeModelHub; cache: string };

async function withHub(work: (place: Place) => Promise<void>): Promise<void> {
  const cache = await Deno.makeTempDir({ prefix: "holdfast-hub-data-" });
  const hub = new FakeModelHub();
  const env = { HF_ENDPOINT: hub.url, HF_HOME: cache };
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    await work({ hub, cache });
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    await hub[Symbol.asyncDispose]();
    await Deno.remove(cache, { recursive: true });
  }
}

Deno.test("pinnedData() gives the parts of a revision one commit, and leaves paths alone", () =>
  withHub(async ({ hub }) => {
    const commit = hub.put("datasets/owner/rows", files(0));
    const config = {
      ...data(`${ROWS}?split=train`, `${ROWS}@main/test.jsonl`),
      evaluate: { sets: [{ name: "own", data: [{ path: `${ROWS}@main?split=train` }] }] },
      inputs: [{ path: "rows.jsonl" }],
      model: { path: "owner/rows" },
      trainer: { engine: "torch", device: "cpu", python },
    };
    const pinned = await pinnedData(config, { download: true });
    const at = `${ROWS}@main@${commit}`;
    deepStrictEqual(pinned.config, {
      ...config,
      ...data(`${at}?split=train`, `${at}/test.jsonl`),
      evaluate: { sets: [{ name: "own", data: [{ path: `${at}?split=train` }] }] },
    });
    deepStrictEqual(
      pinned.data.map(({ name, files }) => [name, files.map(({ path }) => path)]),
      [[`${at}?split=train`, ["train.jsonl"]], [`${at}/test.jsonl`, ["test.jsonl"]]],
    );
    deepStrictEqual(hub.lines.filter((line) => / datasets\/owner\/rows@main$/.test(line)), [
      "GET datasets/owner/rows@main",
    ]);
  }));

Deno.test("pinnedData() without a data set of the hub starts no process", async () => {
  const config = { ...data("a/b", "/c.jsonl"), trainer: { python: "/no/such/python" } };
  const pinned = await pinnedData(config, { download: true });
  deepStrictEqual(pinned, { config, data: [] });
  await rejects(
    pinnedData(data("hf://owner/rows", "a"), { download: true }),
    /^DataError: hf:\/\/owner\/rows: it is not a data set of the hub; write hf:/,
  );
});

Deno.test("asPinned() gives the recorded commits to the same parts of the same revisions", () => {
  const recorded = data(`${ROWS}@main@${COMMIT}?subset=a&split=b`, "/rows.jsonl");
  for (const path of [`${ROWS}?split=b&subset=a`, `${ROWS}@main?subset=a&split=b`]) {
    deepStrictEqual(asPinned(data(path, "/rows.jsonl"), recorded), recorded);
  }
  for (const end of ["?subset=a&split=c", "@v2?subset=a&split=b", "/b", ""]) {
    const config = data(`${ROWS}${end}`, ROWS);
    deepStrictEqual(asPinned(config, recorded), config, end);
  }
});

/** What a session does before it executes: its files are here, and these rows are to be recorded. */
async function present(home: Home, id: string): Promise<NewRow[]> {
  const head = (await home.store.head(id)) as RunHead;
  const { rows } = await presentData(home.store, { head, config: JSON.parse(head.config) }, {});
  return rows;
}

const keys = (rows: NewRow[]) => rows.map(({ kind, key }) => `${kind} ${key}`);

/** One engine's start at a run, with the rows of its own configuration. */
async function execute(home: Home, id: string, noted: NewRow[] = []) {
  const config = JSON.parse((await home.store.head(id))!.config) as OnlineConfig;
  const { train } = await rowTables(config, { home: home.dir });
  const beforeEnd = async () => {
    const { epoch } = (await home.store.head(id))!;
    if (noted.length > 0) await home.store.append(id, epoch, noted);
  };
  const ended = await executeFake(home, id, { rows: { train: train! }, beforeEnd });
  return { ...ended, rows: train!.digest };
}

Deno.test("a run of a hub's rows resumes and forks at its commit, whatever the hub has by then", () =>
  withHub(async ({ hub, cache }) => {
    const home = await freshFakeHome();
    const commit = hub.put("datasets/owner/rows", files(0));
    const trainer = { ...fakeConfig(home).trainer, python };
    const named = { trainer, data: { train: [{ path: `${ROWS}?split=train` }] } };
    const { config } = await pinnedData(named, { download: false });
    const path = `${ROWS}@main@${commit}?split=train`;
    strictEqual(config.data.train[0]!.path, path);
    await createFakeRun(home, "a", {
      ...config,
      data: { ...config.data, on_long_prompt: "unchecked" },
    });
    await rejects(execute(home, "a"), /does not have these files of 'owner\/rows@main@/);
    const noted = await present(home, "a");
    deepStrictEqual(keys(noted), [`note/data ${path}`]);
    const whole = await execute(home, "a", noted);
    strictEqual(whole.status, "done");
    const [note] = await home.store.read("a", { kinds: ["note/data"] });
    const { bytes, files: recorded } = JSON.parse(note!.value);
    deepStrictEqual([bytes, recorded.length, recorded[0].path], [
      new TextEncoder().encode(rows(0)).length,
      1,
      "train.jsonl",
    ]);

    hub.put("datasets/owner/rows", files(50));
    hub.asked.length = 0;
    deepStrictEqual(await present(home, "a"), []); // What is recorded is not recorded again.
    strictEqual(hub.lines.join(), "");
    await forkFake(home, "a", { round: 3, id: "b" });
    await Deno.remove(`${cache}/hub`, { recursive: true }); // As on a different host.
    deepStrictEqual(await present(home, "b"), []);
    deepStrictEqual(hub.lines.filter((line) => !line.includes(`owner/rows@${commit}`)), []);
    match(hub.lines.join(), /train\.jsonl/);
    const forked = await execute(home, "b");
    deepStrictEqual([forked.version, forked.digest, forked.rows], [
      whole.version,
      whole.digest,
      whole.rows,
    ]);
  }));

Deno.test("presentData() refuses a data set that was recorded without a commit", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { data: { train: [{ path: ROWS }] } });
  await rejects(present(home, "a"), {
    name: "InvalidInputError",
    message: `Cannot run 'a' because its data set '${ROWS}@main' was recorded without a commit: ` +
      "another version could arrive at the next start. Fix: give createRun the configuration " +
      "that pinnedData returns",
  });
});
