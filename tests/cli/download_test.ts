import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { download, presence } from "../../cli/download.ts";

const TEXT = "weights of a model";
const SHA256 = createHash("sha256").update(TEXT).digest("hex");
const server = (request: Request): Response => {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.get("range") ?? "")?.[1] ?? 0);
  return new Response(TEXT.slice(from), { status: from > 0 ? 206 : 200 });
};

type Place = {
  dir: string;
  file: { path: string; url: string; bytes: number; sha256: string };
  requests: Request[];
  texts(): Promise<Record<string, string>>;
};

/** A directory for a file that a server answers for. */
async function place(body: (place: Place) => Promise<void>, answer = server): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "download_test_" });
  const requests: Request[] = [];
  const serving = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    requests.push(request);
    return answer(request);
  });
  const dir = `${home}/models`;
  const url = `http://127.0.0.1:${serving.addr.port}/weights`;
  const texts = async () => {
    const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
    const read = async (name: string) => [name, await Deno.readTextFile(`${dir}/${name}`)];
    return Object.fromEntries(await Promise.all(names.map(read)));
  };
  const file = { path: `${dir}/weights`, url, bytes: TEXT.length, sha256: SHA256 };
  try {
    await body({ dir, file, requests, texts });
  } finally {
    await serving.shutdown();
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("presence() tells the listed file from a different one and from none", () =>
  place(async ({ dir, file }) => {
    strictEqual(await presence(file), "absent");
    await Deno.mkdir(dir);
    const texts = [TEXT, TEXT.toUpperCase(), `${TEXT}!`, ""];
    const found = [];
    for (const text of texts) {
      await Deno.writeTextFile(file.path, text);
      found.push(await presence(file));
    }
    deepStrictEqual(found, ["whole", "different", "different", "different"]);
  }));

Deno.test("download() makes the directory, and leaves nothing but the file", () =>
  place(async ({ file, requests, texts }) => {
    await download(file);
    deepStrictEqual(await texts(), { weights: TEXT });
    deepStrictEqual(requests.map(({ headers }) => headers.get("accept-encoding")), ["identity"]);
  }));

Deno.test("download() asks for what a partial file lacks, if it lacks anything", () =>
  place(async ({ dir, file, requests, texts }) => {
    await Deno.mkdir(dir);
    await Deno.writeTextFile(`${file.path}.partial`, TEXT.slice(0, 7));
    await download(file);
    deepStrictEqual(requests.map(({ headers }) => headers.get("range")), ["bytes=7-"]);
    await Deno.rename(file.path, `${file.path}.partial`);
    await download(file);
    deepStrictEqual([requests.length, await texts()], [1, { weights: TEXT }]);
  }));

Deno.test("download() leaves a file that is there as it is, and removes what was begun", () =>
  place(async ({ dir, file, requests, texts }) => {
    await Deno.mkdir(dir);
    await Deno.writeTextFile(file.path, "mine");
    await download(file);
    deepStrictEqual([requests.length, await texts()], [0, { weights: "mine" }]);
  }));

Deno.test("download() refuses other bytes, and begins again after them", () =>
  place(async ({ file, texts }) => {
    const { url } = file;
    await rejects(download({ ...file, sha256: "0".repeat(64) }), {
      code: "infrastructure",
      message: `Cannot fetch weights from ${url} because the downloaded file is not the listed ` +
        "one: its SHA-256 differs",
    });
    deepStrictEqual(await texts(), { "weights.partial": "" });
    await rejects(download({ ...file, bytes: TEXT.length - 1 }), {
      message: `Cannot fetch weights from ${url} because the server sends more than the listed ` +
        `${TEXT.length - 1} bytes`,
    });
  }));

Deno.test("download() says what the server answers", () =>
  place(
    async ({ file }) => {
      await rejects(download(file), {
        retryable: false,
        message: `Cannot fetch weights from ${file.url} because it answers 404 Not Found`,
      });
    },
    () => new Response("gone", { status: 404 }),
  ));
