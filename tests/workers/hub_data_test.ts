/** Data sets of a hub with the real client: which files are fetched, and what is refused. */
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { loadRows } from "../../data/mod.ts";
import { InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import { FakeModelHub, type FakeModelHubOptions } from "../../testing/mod.ts";
import { type FetchedFiles, fetchFromHub, type WantedFiles } from "../../workers/mod.ts";

const python = Deno.env.get("HOLDFAST_TEST_HUB_PYTHON") ??
  Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";

const HEADER = `---
configs:
- config_name: main
  data_files:
  - { split: train, path: [main/train-2*, main/train-1*] }
  - { split: test, path: main/test.jsonl }
- config_name: socratic
  data_files: socratic.jsonl
---
`;
const row = (n: number) => `{"id":"${n}","prompt":"${n} + 1","answer":"${n + 1}"}\n`;
const FILES = {
  "README.md": HEADER,
  "main/train-2.jsonl": row(2),
  "main/train-1.jsonl": row(1),
  "main/test.jsonl": row(3),
  "socratic.jsonl": row(4),
};
const NAME = "openai/rows";
const REPOSITORY = `datasets/${NAME}`;
const TRAIN = { files: null, subset: "main", split: "train" };

type Getting = Partial<WantedFiles> & { env?: Record<string, string>; download?: boolean };
type Place = {
  hub: FakeModelHub;
  home: string;
  commit: string;
  lines: string[];
  get(...wanted: Getting[]): Promise<FetchedFiles[]>;
};

async function inPlace(
  work: (place: Place) => Promise<void>,
  options: FakeModelHubOptions = {},
): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-hub-data-" });
  const hub = new FakeModelHub(options);
  const commit = hub.put(REPOSITORY, FILES);
  const lines: string[] = [];
  const get: Place["get"] = async (...getting) => {
    const wanted = getting.map(({ name = NAME, part = TRAIN, recorded = null }) => ({
      name,
      part,
      code: false,
      recorded,
    }));
    const env = { HF_ENDPOINT: hub.url, HF_HOME: home, HF_TOKEN: "", ...getting[0]!.env };
    const { download = true } = getting[0]!;
    return await fetchFromHub(python, wanted, { download, say: (text) => lines.push(text), env });
  };
  Deno.env.set("HF_HOME", home);
  try {
    await work({ hub, home, commit, lines, get });
  } finally {
    Deno.env.delete("HF_HOME");
    await hub[Symbol.asyncDispose]();
    await Deno.remove(home, { recursive: true });
  }
}

async function rowIds(home: string, path: string): Promise<string[]> {
  const table = await loadRows([{ path }], { home });
  const rows = await table.rows(Array.from({ length: table.size }, (_, i) => i));
  return rows.map(({ row_id }) => row_id);
}

Deno.test("a split is fetched alone, at one commit, and its rows are read in order", () =>
  inPlace(async ({ hub, home, commit, lines, get }) => {
    const test = { ...TRAIN, split: "test" };
    const [train, held] = await get({}, { part: test }) as [FetchedFiles, FetchedFiles];
    const name = `${NAME}@main@${commit}`;
    deepStrictEqual([train.name, held.name], [name, name]);
    // As the header has them, which may not be the order of names.
    deepStrictEqual(train.files.map(({ path }) => path), [
      "main/train-2.jsonl",
      "main/train-1.jsonl",
    ]);
    const gets = hub.lines.filter((line) => line.startsWith("GET"));
    // The second part asks at the commit of the first; the header is fetched once.
    deepStrictEqual(gets.slice(0, 2), [
      `GET ${REPOSITORY}@main`,
      `GET ${REPOSITORY}@${commit} README.md`,
    ]);
    ok(
      gets.includes(`GET ${REPOSITORY}@${commit}`) && !hub.lines.some((line) => /socr/.test(line)),
    );
    const bytes = new TextEncoder().encode(row(1) + row(2)).length;
    strictEqual(
      lines[0],
      `fetching data set ${name}: 2 files, ${bytes} B, from ${hub.url} to ${home}/hub`,
    );
    const pinned = `hf://datasets/${name}?subset=main&split=`;
    deepStrictEqual(await rowIds(home, `${pinned}train`), ["2", "1"]);
    deepStrictEqual(await rowIds(home, `${pinned}test`), ["3"]);
    await get({ part: { files: "main/*.jsonl", subset: null, split: null } });
    deepStrictEqual(await rowIds(home, `hf://datasets/${name}/main/*.jsonl`), ["3", "1", "2"]);
  }));

Deno.test("a fetched part needs no network, but one that was never whole does", () =>
  inPlace(async ({ hub, home, get }) => {
    const [train] = await get({}) as [FetchedFiles];
    const newer = hub.put(REPOSITORY, { ...FILES, "main/train-2.jsonl": row(5) });
    hub.asked.length = 0;
    deepStrictEqual(await get({ name: train.name, recorded: train.files }), [train]);
    deepStrictEqual(hub.lines, []);
    await Deno.writeTextFile(`${train.directory}/main/train-1.jsonl`, row(9)); // Same length.
    const pinned = `hf://datasets/${train.name}?subset=main&split=train`;
    deepStrictEqual(await get({ name: train.name, recorded: train.files }), [train]);
    deepStrictEqual(await rowIds(home, pinned), ["2", "1"]);
    await Deno.remove(`${home}/hub`, { recursive: true }); // As on a different host.
    deepStrictEqual(await get({ name: train.name, recorded: train.files }), [train]);
    deepStrictEqual(await rowIds(home, pinned), ["2", "1"]);
    const [later] = await get({ download: false });
    strictEqual(later!.name, `${NAME}@main@${newer}`);
    const env = { HF_HUB_OFFLINE: "1" };
    deepStrictEqual(await get({ env }), [train]); // What main meant last, here.
    await rejects(
      get({ env, part: { ...TRAIN, split: "test" } }),
      (error: Error) =>
        error instanceof InfrastructureError &&
        /^Cannot fetch data set 'openai\/rows@main' because this machine is offline/.test(
          error.message,
        ),
    );
  }));

Deno.test("what cannot be fetched is said in a sentence, before anything is fetched", () =>
  inPlace(async ({ hub, lines, get }) => {
    const gated = { ...FILES };
    hub.put("datasets/o/gated", gated, { tokens: ["t"] });
    hub.put("datasets/o/hidden", gated, { tokens: ["t"], hidden: true });
    hub.put("datasets/o/script", { "script.py": "raise SystemExit", "README.md": "" });
    hub.put("o/model", { "config.json": "{}" });
    const at = hub.url;
    const all = { files: null, subset: null, split: null };
    const cases: [Getting, string][] = [
      [
        { name: "o/none" },
        `Cannot fetch data set 'o/none' because the hub ${at} has no such data ` +
        "set, or shows it only with a token. Fix: correct the name (OWNER/NAME), or set HF_TOKEN " +
        "to a token that may read the data set",
      ],
      [{ name: "o/model" }, `Cannot fetch data set 'o/model' because the hub ${at} has no such`],
      [{ name: "o/hidden", env: { HF_TOKEN: "x" } }, "or hides it from your token. Fix"],
      [
        { name: `${NAME}@v9` },
        `Cannot fetch data set '${NAME}@v9' because the data set has no ` +
        `revision 'v9'. Fix: name a branch, a tag or a whole commit of ${at}/datasets/${NAME}/`,
      ],
      [
        { name: "o/gated", part: { ...all, files: "socratic.jsonl" } },
        "Cannot fetch data set 'o/gated' because it is gated and no token is set: the hub answers " +
        `401. Fix: accept its conditions at ${at}/datasets/o/gated, and set HF_TOKEN`,
      ],
      [
        { part: all },
        "because it has 2 subsets (main, socratic). Fix: name one, as hf://datasets/",
      ],
      [
        { part: { ...all, subset: "main" } },
        "because it has 2 splits (train, test). Fix: name one",
      ],
      [{ part: { ...TRAIN, split: "val" } }, "has no split 'val'. Fix: name one of: train, test"],
      [{ part: { ...all, files: "x/*" } }, "it has no files 'x/*': it has README.md, main/test"],
      [
        { name: "o/script", part: all },
        "because it has a loading script (script.py), whose code is never run. Fix: name the " +
        "files that the hub has converted, as hf://datasets/o/script@refs/convert/parquet/",
      ],
    ];
    for (const [wanted, text] of cases) {
      await rejects(get(wanted), (error: Error) => {
        ok(error instanceof InvalidInputError, error.message);
        ok(error.message.includes(text), `${error.message}\ndoes not have: ${text}`);
        return true;
      });
    }
    deepStrictEqual(lines, []);
    const [gatedRows] = await get({ name: "o/gated", env: { HF_TOKEN: "t" } });
    strictEqual(gatedRows!.files.length, 2);
  }));

Deno.test("a full disk is said before the first file, and wrong bytes are not kept", async () => {
  const huge = async (answer: () => Response) => {
    const listed = await answer().json();
    for (const one of listed.siblings) if (/train/.test(one.rfilename)) one.size = 2 ** 60;
    return Response.json(listed);
  };
  await inPlace(async ({ hub, get }) => {
    await rejects(get({}), /^InfrastructureError: Cannot fetch data set .* the disk has no room/);
    ok(!hub.lines.some((line) => /^GET .*jsonl$/.test(line)));
  }, { intercept: ({ path }, answer) => path === null ? huge(answer) : undefined });
  const wrong = (answer: () => Response) => new Response(row(8), { headers: answer().headers }); // The length of the real bytes.
  await inPlace(async ({ home, commit, get }) => {
    await rejects(
      get({}),
      /'main\/train-2\.jsonl' arrives with different bytes than the hub lists/,
    );
    const snapshot = `${home}/hub/datasets--openai--rows/snapshots/${commit}/main`;
    const names = await Array.fromAsync(Deno.readDir(snapshot), ({ name }) => name);
    ok(!names.includes("train-2.jsonl"));
    const path = `hf://datasets/${NAME}@main@${commit}?subset=main&split=train`;
    await rejects(rowIds(home, path), (error: Error) => {
      match(error.message, /this host's cache .* does not have these files of 'openai\/rows@main@/);
      return true;
    });
  }, {
    intercept: ({ method, path }, answer) =>
      method === "GET" && path === "main/train-2.jsonl" ? wrong(answer) : undefined,
  });
});
