import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert/strict";
import { FakeModelHub } from "../../testing/mod.ts";

const sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"; // Of "x".

Deno.test("FakeModelHub lists files, and gives them whole or in parts", async () => {
  await using hub = new FakeModelHub();
  const commit = hub.put("o/m", { "model.safetensors": "x", "config.json": "hello" });
  const listed = await (await fetch(`${hub.url}/api/models/o/m/revision/main?blobs=true`)).json();
  deepStrictEqual([listed.id, listed.sha], ["o/m", commit]);
  const [weights, config] = listed.siblings;
  deepStrictEqual(weights.lfs, { sha256, size: 1, pointerSize: 134 });
  deepStrictEqual(config, {
    rfilename: "config.json",
    size: 5,
    blobId: "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0", // git hash-object
  });
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${hub.url}/o/m/resolve/main/${path}`, init);
  const whole = await get("config.json");
  deepStrictEqual([whole.headers.get("etag"), whole.headers.get("x-repo-commit")], [
    `"${config.blobId}"`,
    commit,
  ]);
  strictEqual(await whole.text(), "hello");
  const part = await get("config.json", { headers: { range: "bytes=3-" } });
  deepStrictEqual([part.status, await part.text()], [206, "lo"]);
  const head = await get("model.safetensors", { method: "HEAD" });
  deepStrictEqual([head.headers.get("content-length"), await head.text()], ["1", ""]);
  deepStrictEqual(hub.lines.slice(0, 2), ["GET o/m@main", "GET o/m@main config.json"]);
});

Deno.test("FakeModelHub has data sets beside models of the same name", async () => {
  await using hub = new FakeModelHub();
  hub.put("o/m", { "config.json": "model" });
  const commit = hub.put("datasets/o/m", { "data/a.jsonl": "rows", "b.parquet": "x" });
  const listed = await (await fetch(`${hub.url}/api/datasets/o/m/revision/main`)).json();
  deepStrictEqual([listed.id, listed.sha], ["o/m", commit]);
  deepStrictEqual(listed.siblings.map(({ lfs }: { lfs?: { sha256: string } }) => lfs?.sha256), [
    undefined,
    sha256,
  ]);
  const file = await fetch(`${hub.url}/datasets/o/m/resolve/${commit}/data/a.jsonl`);
  strictEqual(await file.text(), "rows");
  deepStrictEqual(hub.lines, ["GET datasets/o/m@main", `GET datasets/o/m@${commit} data/a.jsonl`]);
});

Deno.test("FakeModelHub refuses as the hub does", async () => {
  await using hub = new FakeModelHub();
  hub.put("o/open", { "config.json": "" });
  hub.put("o/gated", { "config.json": "" }, { tokens: ["t"] });
  hub.put("o/hidden", { "config.json": "" }, { tokens: ["t"], hidden: true });
  const of = async (path: string, token?: string) => {
    const headers = token ? { authorization: `Bearer ${token}` } : undefined;
    const answer = await fetch(`${hub.url}/${path}`, { headers });
    await answer.body?.cancel();
    return [answer.status, answer.headers.get("x-error-code")];
  };
  const list = (model: string) => `api/models/${model}/revision/main`;
  deepStrictEqual(await of(list("o/none")), [401, null]);
  deepStrictEqual(await of(list("o/none"), "t"), [404, "RepoNotFound"]);
  deepStrictEqual(await of(list("o/hidden")), [401, null]);
  deepStrictEqual(await of(list("o/hidden"), "t"), [200, null]);
  deepStrictEqual(await of(list("o/gated")), [200, null]);
  deepStrictEqual(await of("o/gated/resolve/main/config.json"), [401, "GatedRepo"]);
  deepStrictEqual(await of("o/gated/resolve/main/config.json", "bad"), [403, "GatedRepo"]);
  deepStrictEqual(await of("o/gated/resolve/main/config.json", "t"), [200, null]);
  deepStrictEqual(await of("api/models/o/open/revision/v9"), [404, "RevisionNotFound"]);
  deepStrictEqual(await of("o/open/resolve/main/none"), [404, "EntryNotFound"]);
  deepStrictEqual(await of("elsewhere"), [404, "EntryNotFound"]);
});

Deno.test("FakeModelHub keeps a revision's earlier commits, and is intercepted", async () => {
  await using hub = new FakeModelHub({
    intercept: ({ path }, answer) =>
      path === "slow" ? new Response("cut", { headers: answer().headers }) : undefined,
  });
  const first = hub.put("o/m", { file: "1", slow: "2" });
  const second = hub.put("o/m", { file: "2" });
  notStrictEqual(first, second);
  const text = async (at: string) => await (await fetch(`${hub.url}/o/m/resolve/${at}`)).text();
  deepStrictEqual([await text(`${first}/file`), await text("main/file")], ["1", "2"]);
  strictEqual(hub.put("o/m", { file: "1", slow: "2" }, { revision: "v1" }), first);
  strictEqual(await text("v1/slow").catch(() => "cut"), "cut");
});
