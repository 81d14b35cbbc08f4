import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fetchFiles } from "../../../cli/verbs/fetch.ts";
import { type ShippedFile, type ShippedFiles, shippedFiles } from "../../../configs/mod.ts";
import { FakeModelHub } from "../../../testing/mod.ts";
import { copyTree } from "../../copy_tree.ts";
import { ROOT } from "../fixtures.ts";

const MODEL: Record<string, string> = {
  "tokenizer.json": "{}",
  "model.safetensors": "weights",
  "config.json": "{ }",
};
const ROWS: Record<string, string> = { "train.jsonl": '{"prompt": "1 + 1", "completion": "2"}\n' };

type Answer = (text: string, request: Request) => Response | Promise<Response>;

/** What a hub does. */
const hub: Answer = (text, request) => {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.get("range") ?? "")?.[1] ?? 0);
  return new Response(text.slice(from), { status: from > 0 ? 206 : 200 });
};

/** A directory with a configuration, a hub with its model and rows, and what was asked of it. */
type Place = {
  dir: string;
  config: string;
  known: ShippedFiles[];
  requests: string[];
  answer: Answer;
  fetch(): Promise<string>;
};

async function inPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-fetch-" });
  const place: Partial<Place> = { dir, requests: [], answer: hub };
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const name = new URL(request.url).pathname.slice(1);
    place.requests!.push(`${name} ${request.headers.get("range") ?? ""}`.trim());
    return place.answer!({ ...MODEL, ...ROWS }[name]!, request);
  });
  const files = (name: string, texts: Record<string, string>): ShippedFiles => ({
    name,
    dir: join(dir, name),
    page: `https://example.org/${name}`,
    files: Object.entries(texts).map(([file, text]) => ({
      path: join(dir, name, file),
      url: `http://127.0.0.1:${server.addr.port}/${file}`,
      bytes: text.length,
      sha256: createHash("sha256").update(text).digest("hex"),
    })),
  });
  place.known = [files("model", MODEL), files("rows", ROWS), files("others", ROWS)];
  place.config = join(dir, "taught.yaml");
  place.fetch = () => fetchFiles(place.config!, { known: place.known! });
  const text = "flow: supervised\nname: taught\nrounds: 1\nrows_per_round: 1\nalgorithm: sft\n" +
    "model: { path: model }\ndata: { train: rows/train.jsonl }\n";
  await Deno.writeTextFile(place.config, text);
  try {
    await work(place as Place);
  } finally {
    await server.shutdown();
    await Deno.remove(dir, { recursive: true });
  }
}

async function texts(dir: string): Promise<Record<string, string>> {
  const names = (await Array.fromAsync(Deno.readDir(dir), ({ name }) => name)).sort();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await Deno.readTextFile(`${dir}/${name}`)])),
  );
}

const sorted = (map: Record<string, string>) => Object.fromEntries(Object.entries(map).sort());

async function checkWhole({ dir }: Place): Promise<void> {
  deepStrictEqual(await texts(`${dir}/model`), sorted(MODEL));
  deepStrictEqual(await texts(`${dir}/rows`), ROWS);
}

Deno.test("fetch puts the model and the rows where a configuration looks for them, says where, and asks for nothing twice", () =>
  inPlace(async (place) => {
    const { dir, config } = place;
    const first = await place.fetch();
    await checkWhole(place);
    deepStrictEqual(place.requests, [...Object.keys(MODEL), ...Object.keys(ROWS)]);
    const lines = [
      `model: 3 files, 12 B, in ${dir}/model, `,
      `rows: 1 file, 39 B, in ${dir}/rows, `,
    ];
    const run = `Run it: deno task rl run ${config}`;
    strictEqual(first, [...lines.map((line) => `${line}fetched`), run].join("\n"));
    place.requests.length = 0;
    strictEqual(
      await place.fetch(),
      [...lines.map((line) => `${line}already there`), run].join("\n"),
    );
    deepStrictEqual(place.requests, []);
  }));

Deno.test("fetch that was killed after any byte goes on from there, whether the server gives parts or not", async (t) => {
  const text = MODEL["model.safetensors"]!;
  const whole: Answer = (text) => new Response(text);
  for (const answer of [hub, whole]) {
    for (let bytes = 0; bytes <= text.length + 2; bytes++) {
      await t.step(
        `${bytes} bytes, ${answer === hub ? "parts" : "whole"}`,
        () =>
          inPlace(async (place) => {
            place.answer = answer;
            await Deno.mkdir(`${place.dir}/model`);
            const cut = `${text}++`.slice(0, bytes);
            await Deno.writeTextFile(`${place.dir}/model/model.safetensors.partial`, cut);
            await place.fetch();
            await checkWhole(place);
            const ranges = place.requests.filter((one) => one.startsWith("model.safetensors"));
            const range = bytes > 0 && bytes < text.length ? ` bytes=${bytes}-` : "";
            deepStrictEqual(ranges, bytes === text.length ? [] : [`model.safetensors${range}`]);
          }),
      );
    }
  }
});

const BAD: Record<string, { answer: Answer; says: RegExp }> = {
  "other bytes": {
    answer: (text) => new Response("?".repeat(text.length)),
    says: /its SHA-256 differs/,
  },
  "too few bytes": {
    answer: (text) => new Response(text.slice(0, -1)),
    says: /ended after 1 of 2 bytes/,
  },
  "too many bytes": {
    answer: (text) => new Response(`${text}!`),
    says: /the server sends more than the listed 2 bytes/,
  },
  "an error": {
    answer: () => new Response("gone", { status: 404 }),
    says: /it answers 404 Not Found/,
  },
};

for (const [name, { answer, says }] of Object.entries(BAD)) {
  Deno.test(`fetch that gets ${name} takes nothing for whole, says what to do by hand, and succeeds later`, () =>
    inPlace(async (place) => {
      const { dir } = place;
      place.answer = answer;
      const { message } = await place.fetch().then(
        () => new Error("it was taken"),
        (error: Error) => error,
      );
      match(message, /^Cannot fetch tokenizer\.json from http:/);
      match(message, says);
      const files =
        `tokenizer.json, model.safetensors, config.json of https://example.org/model into ${dir}/model`;
      const rows = `train.jsonl of https://example.org/rows into ${dir}/rows`;
      ok(message.endsWith(`or download by hand ${files}, and ${rows}`), message);
      strictEqual(message.split("\n").length, 1);
      deepStrictEqual(Object.keys(await texts(`${dir}/model`)), ["tokenizer.json.partial"]);
      place.answer = hub;
      await place.fetch();
      await checkWhole(place);
    }));
}

Deno.test("fetch completes what was put there by hand, and leaves a directory with a file of other bytes as it is", () =>
  inPlace(async (place) => {
    await Deno.mkdir(`${place.dir}/rows`);
    await Deno.writeTextFile(`${place.dir}/rows/train.jsonl`, "mine");
    await Deno.mkdir(`${place.dir}/model`);
    await Deno.writeTextFile(`${place.dir}/model/config.json`, MODEL["config.json"]!);
    const text = await place.fetch();
    match(text, /^model: 3 files.*, fetched$/m);
    ok(
      text.includes(
        `rows: ${place.dir}/rows is unchanged because its train.jsonl differs from that of rows\n`,
      ),
      text,
    );
    deepStrictEqual(await texts(`${place.dir}/rows`), { "train.jsonl": "mine" });
    deepStrictEqual(place.requests, ["tokenizer.json", "model.safetensors"]);
    place.requests.length = 0;
    await Deno.writeTextFile(`${place.dir}/model/tokenizer.json`, "[]");
    await Deno.remove(`${place.dir}/model/model.safetensors`);
    match(
      await place.fetch(),
      /^model: .* is unchanged because its tokenizer.json differs from that of model$/m,
    );
    deepStrictEqual(place.requests, []);
  }));

Deno.test("three fetches at once ask for each file once", () =>
  inPlace(async (place) => {
    await Promise.all([place.fetch(), place.fetch(), place.fetch()]);
    await checkWhole(place);
    deepStrictEqual(
      place.requests.toSorted(),
      [...Object.keys(MODEL), ...Object.keys(ROWS)].sort(),
    );
  }));

Deno.test("fetch without room on the disk asks for nothing", () =>
  inPlace(async ({ config, known, requests }) => {
    await rejects(
      fetchFiles(config, { known, free: () => 11 }),
      /no room: it takes 12 B in .*, which has 11 B free/,
    );
    deepStrictEqual(requests, []);
  }));

Deno.test("fetch into what is no directory says so", () =>
  inPlace(async (place) => {
    await Deno.writeTextFile(`${place.dir}/rows`, "");
    await rejects(
      place.fetch(),
      new RegExp(`Cannot fetch rows because ${place.dir}/rows cannot be written: .*by hand`),
    );
  }));

Deno.test("fetch for files of one's own says what it knows", () =>
  inPlace(async ({ dir, config, known }) => {
    const overrides = ["model.path=mine", "data.train.0.path=mine.jsonl"];
    await rejects(
      fetchFiles(config, { known, overrides }),
      new RegExp(`Fix: name ${dir}/model or ${dir}/rows`),
    );
  }));

Deno.test("fetch of a hub's model says its commit, size and place, beside known files", () =>
  inPlace(async ({ dir, config, known }) => {
    const hub = new FakeModelHub();
    const texts = { ...MODEL, "config.json": "{}" };
    const commit = hub.put("owner/tiny", texts);
    const env = { HF_ENDPOINT: hub.url, HF_HOME: dir };
    for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
    try {
      const python = Deno.env.get("HOLDFAST_TEST_PYTHON")!;
      const overrides = ["model.path=owner/tiny", `trainer.python=${python}`];
      const fetched = () => fetchFiles(config, { known, overrides });
      const snapshot = `${dir}/hub/models--owner--tiny/snapshots/${commit}`;
      const [model, rows] = (await fetched()).split("\n");
      match(model!, /: 3 files, 11 B, digest [0-9a-f]{12}, in /);
      ok(model!.startsWith(`owner/tiny@main@${commit}: `) && model!.endsWith(snapshot));
      match(rows!, /^rows: 1 file, .*, fetched$/);
      deepStrictEqual((await fetched()).split("\n")[0], model);
      const userFiles = [...overrides, `data.train.0.path=${config}`];
      match(await fetchFiles(config, { known, overrides: userFiles }), /^owner.*\nRun it/);
    } finally {
      for (const name of Object.keys(env)) Deno.env.delete(name);
      await hub[Symbol.asyncDispose]();
    }
  }));

Deno.test("the model comes from HF_ENDPOINT where there is one, at a pinned revision", () => {
  const [model] = shippedFiles("http://mirror.example/");
  const weights = model!.files.find(({ path }) =>
    path.endsWith("model.safetensors")
  ) as ShippedFile;
  match(
    weights.url,
    /^http:\/\/mirror\.example\/HuggingFaceTB\/SmolLM2-135M-Instruct\/resolve\/[0-9a-f]{40}\/model\.safetensors$/,
  );
  strictEqual(
    model!.files.at(-1)!.path.endsWith("/config.json"),
    true,
    "without it a directory is no model",
  );
});

Deno.test("a run whose model and data are missing names the command that fetches them, which without a network says what to do", async () => {
  const clone = await Deno.makeTempDir({ prefix: "holdfast-fetch-clone-" });
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const hub = `http://127.0.0.1:${closed.addr.port}`;
  closed.close();
  const rl = async (...args: string[]) => {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", "cli/main.ts", ...args],
      cwd: clone,
      env: { HF_ENDPOINT: hub },
    }).output();
    return { code, err: new TextDecoder().decode(stderr) };
  };
  try {
    await copyTree(ROOT, `${clone}/`);
    for (
      const [config, missing] of [["configs/gsm8k_grpo.yaml", 3], ["configs/sft.yaml", 2]] as const
    ) {
      const { code, err } = await rl("run", config);
      strictEqual(code, 2);
      strictEqual(err.split(`; fetch it: deno task rl fetch ${config}`).length - 1, missing, err);
    }
    const { code, err } = await rl("fetch", "configs/gsm8k_grpo.yaml");
    strictEqual(code, 3);
    match(
      err,
      /Cannot fetch generation_config\.json from http:\/\/127\.0\.0\.1:\d+\/.* because .*[Cc]onnection refused/,
    );
    match(
      err,
      /by hand generation_config\.json, .* into .*\/models\/SmolLM2-135M-Instruct, and train\.jsonl, test\.jsonl of .* into/,
    );
  } finally {
    await Deno.remove(clone, { recursive: true });
  }
});
