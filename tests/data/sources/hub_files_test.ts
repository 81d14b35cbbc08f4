import { deepStrictEqual, ok, rejects, strictEqual, throws } from "node:assert/strict";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { hostPath, hubFileName, loadRows, sourceFiles } from "../../../data/mod.ts";

const COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca";
const PINNED = `hf://datasets/owner/rows@main@${COMMIT}`;
const ROW = '{"prompt":"a","answer":"b"}\n';

async function write(path: string, text: string): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(path, text);
}

/** A cache with files of a data set, and what a fetch kept of its split `train`. */
async function withCache(work: (snapshot: string, list: string) => Promise<void>): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-hub-files-" });
  const storage = `${home}/hub/datasets--owner--rows`;
  const snapshot = `${storage}/snapshots/${COMMIT}`;
  const key = createHash("sha256").update('[null,null,"train"]').digest("hex");
  const list = `${storage}/holdfast/${COMMIT}/${key}.json`;
  const before = Deno.env.get("HF_HOME");
  Deno.env.set("HF_HOME", home);
  try {
    for (const name of ["b", "a", "c"]) await write(`${snapshot}/${name}.jsonl`, ROW);
    const files = ["b.jsonl", "a.jsonl"].map((path) => ({ path, bytes: 28, etag: "x" }));
    await write(list, JSON.stringify({ files }));
    await work(snapshot, list);
  } finally {
    if (before === undefined) Deno.env.delete("HF_HOME");
    else Deno.env.set("HF_HOME", before);
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("sourceFiles() of a hub's split are the files that its fetch kept, in their order", () =>
  withCache(async (snapshot) => {
    const files = await sourceFiles({ path: `${PINNED}?split=train` });
    deepStrictEqual(files.map(({ path, format }) => [path, format.name]), [
      [`${snapshot}/b.jsonl`, "json_lines"],
      [`${snapshot}/a.jsonl`, "json_lines"],
    ]);
    const sources = [{ path: `${PINNED}?split=train`, duplicates: "skip" as const }];
    const rows = await loadRows(sources, { home: `${snapshot}/home` });
    deepStrictEqual([rows.size, rows.files[0]!.path], [1, `${snapshot}/b.jsonl`]);
  }));

Deno.test("sourceFiles() refuses a split that the cache lacks, in whole or in part", () =>
  withCache(async (snapshot, list) => {
    const path = `${PINNED}?split=train`;
    const absent = {
      name: "DataError",
      message:
        `${path}: this host's cache ${
          snapshot.split("/datasets--")[0]
        } does not have these files of 'owner/rows@main@${COMMIT}'; run \`deno task rl fetch ` +
        "CONFIG` on this host, or name the cache that has them (HF_HOME)",
    };
    await rejects(sourceFiles({ path: `${PINNED}?split=test` }), /does not have these files/);
    await rejects(sourceFiles({ path: "hf://datasets/owner/rows" }), /the source has no commit/);
    await Deno.remove(`${snapshot}/a.jsonl`);
    await rejects(sourceFiles({ path }), absent);
    for (const damage of ["", "{}", '{"files":[]}', '{"files":[{"path":3}]}']) {
      await Deno.writeTextFile(list, damage);
      await rejects(sourceFiles({ path }), absent);
    }
  }));

Deno.test("sourceFiles() of a path that may be a name of the hub says how that is written", async () => {
  await rejects(sourceFiles({ path: "openai/gsm8k" }), {
    message:
      "openai/gsm8k: Cannot read it: there is no such file; a data set of the hub is named " +
      "hf://datasets/OWNER/NAME",
  });
  await rejects(sourceFiles({ path: "no/rows.csv" }), /there is no such file$/);
});

Deno.test("a file of the hub has one name on every host", () =>
  withCache((snapshot) => {
    const name = hubFileName(`${PINNED}?split=train`, `${snapshot}/data/a.jsonl`);
    strictEqual(name, `${PINNED}/data/a.jsonl`);
    strictEqual(hostPath(name), `${snapshot}/data/a.jsonl`);
    deepStrictEqual([hubFileName("/a", "/a/b"), hostPath("/a/b")], ["/a/b", "/a/b"]);
    for (const out of ["/../../../x", "//etc/passwd", ""]) {
      throws(() => hostPath(`${PINNED}${out}`), /does not have these files/);
    }
    return Promise.resolve();
  }));

Deno.test("the cache is where the hub's client looks for it", async () => {
  const HOME = Deno.env.get("HOME");
  const cases: [Record<string, string>, string][] = [
    [{}, `${HOME}/.cache/huggingface/hub`],
    [{ XDG_CACHE_HOME: "/x" }, "/x/huggingface/hub"],
    [{ HF_HOME: "~/h", XDG_CACHE_HOME: "/x" }, `${HOME}/h/hub`],
    [{ HUGGINGFACE_HUB_CACHE: "/old", HF_HOME: "/h" }, "/old"],
    [{ HF_HUB_CACHE: "/c", HUGGINGFACE_HUB_CACHE: "/old" }, "/c"],
  ];
  const names = ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"];
  const before = names.map((name) => [name, Deno.env.get(name)] as const);
  try {
    for (const [env, cache] of cases) {
      for (const name of names) Deno.env.delete(name);
      for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
      await rejects(sourceFiles({ path: `${PINNED}/none-*` }), (error: Error) => {
        ok(error.message.includes(`this host's cache ${cache} does not have`), error.message);
        return true;
      });
    }
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) Deno.env.delete(name);
      else Deno.env.set(name, value);
    }
  }
});
