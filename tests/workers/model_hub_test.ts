import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { createHash } from "node:crypto";
import { InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import { FakeModelHub, type FakeModelHubOptions } from "../../testing/mod.ts";
import { type FetchedFiles, fetchFromHub } from "../../workers/mod.ts";
import { fakePython } from "./environments/fake_python.ts";
import { PYTHON_ROOT } from "../../workers/processes/local_launcher.ts";

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";

const CONFIG = JSON.stringify({ model_type: "qwen2", architectures: ["Qwen2ForCausalLM"] });
const INDEX = JSON.stringify({
  weight_map: { a: "model-1.safetensors", b: "model-2.safetensors" },
});
const WEIGHTS = new Uint8Array(300_000).map((_, i) => i % 251);
/** What a run reads. */
const READ = {
  "tokenizer.json": "{}",
  "chat_template.jinja": "{{ messages }}",
  "model.safetensors.index.json": INDEX,
  "model-1.safetensors": WEIGHTS,
  "model-2.safetensors": WEIGHTS.slice(0, 1000),
  "config.json": CONFIG,
};
/** What it does not. */
const UNREAD = {
  "README.md": "# Model",
  "LICENSE.txt": "free",
  "modeling_own.py": "raise SystemExit",
  "pytorch_model.bin": "pickle",
  "pytorch_model.bin.index.json": "{}",
  "consolidated.safetensors": "twice",
  "original/model.safetensors": "twice",
  "model-3.safetensors": "of no index",
};
const NAME = "owner/tiny";

type Place = {
  hub: FakeModelHub;
  cache: string;
  commit: string;
  get(name?: string, options?: Getting): Promise<FetchedFiles>;
};
type Getting = {
  env?: Record<string, string>;
  code?: boolean;
  download?: boolean;
  recorded?: FetchedFiles["files"];
  say?: (text: string) => void;
};

async function inPlace(
  work: (place: Place) => Promise<void>,
  options: FakeModelHubOptions = {},
): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-model-hub-" });
  const hub = new FakeModelHub(options);
  const commit = hub.put(NAME, { ...UNREAD, ...READ });
  const get: Place["get"] = async (name = NAME, options = {}) => {
    const { code = false, download = true, recorded = null, say } = options;
    const env = { HF_ENDPOINT: hub.url, HF_HOME: home, HF_TOKEN: "", ...options.env };
    const [model] = await fetchFromHub(python, [{ name, code, recorded }], { download, say, env });
    return model!;
  };
  try {
    await work({ hub, cache: `${home}/hub`, commit, get });
  } finally {
    await hub[Symbol.asyncDispose]();
    await Deno.remove(home, { recursive: true });
  }
}

async function bytesOf(dir: string): Promise<Record<string, string>> {
  const names = (await Array.fromAsync(Deno.readDir(dir), ({ name }) => name)).sort();
  const read = async (name: string) => [name, sha256(await Deno.readFile(`${dir}/${name}`))];
  return Object.fromEntries(await Promise.all(names.map(read)));
}

const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const WHOLE = Object.fromEntries(
  Object.entries(READ).map(([name, content]) => [name, sha256(content)] as const).sort(),
);

async function checkWhole({ cache }: Place, model: FetchedFiles): Promise<void> {
  deepStrictEqual(await bytesOf(model.directory), WHOLE);
  const blobs = await Array.fromAsync(Deno.readDir(`${cache}/models--owner--tiny/blobs`));
  deepStrictEqual(blobs.map(({ name }) => name).filter((name) => name.includes(".")), []);
}

const gets = (hub: FakeModelHub) => hub.lines.filter((line) => / \S+\.\S+$/.test(line));

Deno.test("fetchFromHub() is ended by its signal, not by the terminal's Ctrl-C", async () => {
  const home = await Deno.makeTempDir({ prefix: "holdfast-model-hub-" });
  try {
    const slow = await fakePython(
      home,
      'printf \'{"say": "%s"}\\n\' $(ps -o pgid= -p $$); exec sleep 600',
    );
    const { stdout } = await new Deno.Command("ps", { args: ["-o", "pgid=", "-p", `${Deno.pid}`] })
      .output();
    const stop = new AbortController();
    const say = (group: string) => {
      match(group, /^\d+$/);
      notStrictEqual(group, new TextDecoder().decode(stdout).trim());
      stop.abort(new Error("Ctrl-C"));
    };
    const wanted = [{ name: NAME, code: false, recorded: null }];
    const { signal } = stop;
    await rejects(fetchFromHub(slow, wanted, { download: true, say, signal }), /^Error: Ctrl-C$/);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

Deno.test("fetchFromHub() fetches what a run reads, config.json last, and says its size", () =>
  inPlace(async (place) => {
    const { hub, commit, cache, get } = place;
    const lines: string[] = [];
    const model = await get(NAME, { say: (text) => lines.push(text) });
    await checkWhole(place, model);
    strictEqual(model.name, `${NAME}@main@${commit}`);
    deepStrictEqual(model.files.map(({ path }) => path), Object.keys(WHOLE));
    strictEqual(
      model.digest,
      sha256(model.files.map(({ etag, path }) => `${etag}  ${path}\n`).sort().join("")),
    );
    match(gets(hub).at(-1)!, /^GET owner\/tiny@[0-9a-f]{40} config\.json$/);
    const of = `${NAME}@main@${commit}: 5 files, 294.0 KiB, from ${hub.url} to ${cache}`;
    deepStrictEqual(lines, [`fetching model ${of}`]); // The index is there, to know the shards.
  }));

Deno.test("fetchFromHub() fetches nothing twice, and asks nothing about recorded files", () =>
  inPlace(async (place) => {
    const { hub, commit, get } = place;
    const first = await get();
    hub.asked.length = 0;
    deepStrictEqual(await get(`${NAME}@main`), first);
    deepStrictEqual(hub.lines, [`GET ${NAME}@main`, `HEAD ${NAME}@${commit} config.json`]);
    const later = hub.put(NAME, { ...READ, "tokenizer.json": "[]" });
    hub.asked.length = 0;
    deepStrictEqual(await get(first.name, { recorded: first.files }), first);
    strictEqual(hub.lines.join("\n"), "");
    strictEqual((await get(NAME, { download: false })).name, `${NAME}@main@${later}`);
    await Deno.remove(`${first.directory}/tokenizer.json`);
    hub.asked.length = 0;
    deepStrictEqual(await get(first.name, { recorded: first.files }), first);
    deepStrictEqual(hub.lines.filter((line) => !line.endsWith(`${commit} tokenizer.json`)), []);
    await checkWhole(place, first);
  }));

Deno.test("fetchFromHub() without a network takes what a revision meant last", () =>
  inPlace(async ({ hub, cache, get }) => {
    const first = await get();
    await hub[Symbol.asyncDispose]();
    deepStrictEqual(await get(), first);
    deepStrictEqual(await get(NAME, { env: { HF_HUB_OFFLINE: "1" } }), first);
    await Deno.remove(`${first.directory}/model-2.safetensors`);
    const has = `and the cache ${cache} has no whole copy of it. Fix: `;
    const fixes = "or run `deno task rl fetch CONFIG` where there is a network and copy that " +
      "cache; or name a directory";
    await rejects(get(), {
      name: "InfrastructureError",
      message: `Cannot fetch model '${NAME}@main' because the hub ${hub.url} cannot be reached ` +
        `([Errno 111] Connection refused) ${has}check the network, or name a mirror ` +
        `(HF_ENDPOINT); ${fixes}`,
    });
    await rejects(get(NAME, { env: { HF_HUB_OFFLINE: "1" } }), {
      name: "InfrastructureError",
      message: `Cannot fetch model '${NAME}@main' because this machine is offline ` +
        `(HF_HUB_OFFLINE is set) ${has}unset HF_HUB_OFFLINE; ${fixes}`,
    });
  }));

/** What is wrong, the model's files, and what is said after the name. */
const { "model-2.safetensors": _, ...CUT } = READ;
const REFUSED: [what: string, files: Record<string, string | Uint8Array>, says: RegExp][] = [
  [
    "pickles",
    { "config.json": CONFIG, "pytorch_model.bin": "" },
    /only as PyTorch pickles \(\.bin/,
  ],
  [
    "an adapter",
    { "config.json": CONFIG, "adapter_config.json": "" },
    /because it is an adapter: /,
  ],
  ["GGUF", { "config.json": CONFIG, "a.gguf": "" }, /only as GGUF/],
  ["no weights", { "config.json": CONFIG }, /because it has no weights: /],
  ["no configuration", { "model.safetensors": "" }, /because it has no config\.json: /],
  ["a shard missing", CUT, /does not have: model-2\.saf/],
];

Deno.test("fetchFromHub() refuses a model that is not there, not given or not whole", async (t) => {
  await inPlace(async ({ hub, cache, get }) => {
    hub.put("owner/gated", READ, { tokens: ["good"] });
    hub.put("owner/hidden", READ, { tokens: ["good"], hidden: true });
    const token = (HF_TOKEN: string) => ({ env: { HF_TOKEN } });
    const at = hub.url;
    const cases: [string, Getting, RegExp][] = [
      ["owner/none", {}, /has no such model, or shows it only with a token; no directory/],
      ["owner/none", token("bad"), /has no such model, or hides it from your token; no dir/],
      ["owner/hidden", {}, /has no such model, or shows it only with a token; .* set HF_TOKEN/],
      [`${NAME}@v9`, {}, RegExp(`has no revision 'v9'. Fix: .* of ${at}/${NAME}/commits/main$`)],
      [`${NAME}@${"0".repeat(40)}`, {}, /has no revision '0{40}'/],
      ["owner/gated", {}, /it is gated and no token is set: the hub answers 401\. Fix: acc/],
      [
        "owner/gated",
        token("bad"),
        /gated and your token has no access to it: the hub answers 403/,
      ],
    ];
    for (const [name, options, says] of cases) {
      await t.step(
        `${name} ${options.env?.HF_TOKEN ?? ""}`,
        () =>
          rejects(get(name, options), (error: Error) => {
            ok(error instanceof InvalidInputError, String(error));
            match(error.message, /^Cannot fetch model 'owner\//);
            match(error.message, says);
            strictEqual(error.message.split("\n").length, 1);
            return true;
          }),
      );
    }
    for (const [what, files, says] of REFUSED) {
      hub.put("owner/odd", files);
      await t.step(what, () => rejects(get("owner/odd"), says));
    }
    deepStrictEqual(
      gets(hub).filter((line) => line.includes("safetensors") && !line.includes("index")),
      [],
    );
    for (const name of ["owner/gated", "owner/hidden"]) await get(name, token("good"));
    deepStrictEqual(
      await Array.fromAsync(Deno.readDir(cache), ({ name }) => name).then((names) =>
        names.filter((name) => name.startsWith("models--")).sort()
      ),
      ["models--owner--gated", "models--owner--hidden", "models--owner--odd"],
    );
  });
});

Deno.test("fetchFromHub() says that the disk has no room before it fetches a file", () => {
  const huge = async (answer: () => Response) => {
    const { siblings, ...info } = await answer().json();
    return Response.json({
      ...info,
      siblings: siblings.map((one: { size: number }) => ({ ...one, size: one.size * 2 ** 40 })),
    });
  };
  return inPlace(
    async ({ hub, cache, get }) => {
      await rejects(get(), (error: Error) => {
        ok(error instanceof InfrastructureError);
        const takes =
          /no room: it takes \d+\.\d TiB in (.*), which has [\d.]+ [KMGT]iB free\. Fix: /;
        strictEqual(takes.exec(error.message)?.[1], cache, error.message);
        return true;
      });
      deepStrictEqual(
        gets(hub).filter((line) => /^GET(?!.* model\.safetensors\.index\.json$)/.test(line)),
        [],
      );
    },
    { intercept: ({ path }, answer) => path === null ? huge(answer) : undefined },
  );
});

/** Starts the process that fetches, as `fetchFromHub` does. */
function start({ hub, cache }: Place): Deno.ChildProcess {
  return new Deno.Command(python, {
    args: ["-m", "holdfast_worker.model_hub.fetch"],
    env: { HF_ENDPOINT: hub.url, HF_HOME: cache.slice(0, -4), PYTHONPATH: PYTHON_ROOT },
    stdin: "piped",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

async function ask(child: Deno.ChildProcess): Promise<WritableStreamDefaultWriter<Uint8Array>> {
  const stdin = child.stdin.getWriter();
  const wanted = [{ name: NAME, code: false, recorded: null }];
  await stdin.write(new TextEncoder().encode(`${JSON.stringify({ wanted, download: true })}\n`));
  return stdin;
}

/** Half of a file arrives, then nothing. `reached`: it has arrived. */
function stalling(stalled: string) {
  const reached = Promise.withResolvers<void>();
  const state = { on: true };
  const options: FakeModelHubOptions = {
    intercept: ({ method, path }, answer) => {
      if (!state.on || method !== "GET" || path !== stalled) return undefined;
      const { headers } = answer();
      const body = new ReadableStream({
        async pull(controller) {
          controller.enqueue(WEIGHTS.slice(0, Number(headers.get("content-length")) / 2));
          reached.resolve();
          await new Promise(() => {});
        },
      });
      return new Response(body, { headers });
    },
  };
  return { reached: reached.promise, state, options };
}

for (const stalled of ["tokenizer.json", "model-1.safetensors", "config.json"]) {
  Deno.test(`a fetch killed within ${stalled} leaves no usable copy, and is completed`, () => {
    const { reached, state, options } = stalling(stalled);
    return inPlace(async (place) => {
      const { hub, get } = place;
      const child = start(place);
      const stdin = await ask(child);
      await reached;
      child.kill("SIGKILL");
      await child.status;
      await stdin.close().catch(() => {});
      await rejects(get(NAME, { env: { HF_HUB_OFFLINE: "1" } }), /has no whole copy of it/);
      state.on = false;
      hub.asked.length = 0;
      await checkWhole(place, await get());
      if (stalled === "config.json") { // All others were there.
        deepStrictEqual([...new Set(gets(hub).map((line) => line.split(" ").at(-1)))], [stalled]);
      }
    }, options);
  });
}

Deno.test("a fetch whose engine is gone ends", () => {
  const { reached, options } = stalling("model-1.safetensors");
  return inPlace(async (place) => {
    const child = start(place);
    const stdin = await ask(child);
    await reached;
    await stdin.close();
    strictEqual((await child.status).code, 1);
  }, options);
});

Deno.test("fetchFromHub() replaces damaged files of the cache, and says so without a network", () =>
  inPlace(async (place) => {
    const { hub, commit, get } = place;
    const first = await get();
    const damage = async () => {
      for (const [name, text] of [["tokenizer.json", "[]"], ["model-1.safetensors", "cut"]]) {
        await Deno.writeTextFile(`${first.directory}/${name}`, text!);
      }
    };
    await damage();
    hub.asked.length = 0;
    deepStrictEqual(await get(first.name, { recorded: first.files }), first);
    await checkWhole(place, first);
    deepStrictEqual(
      hub.lines.filter((line) => line.startsWith("GET")).sort(),
      [`GET ${NAME}@${commit} model-1.safetensors`, `GET ${NAME}@${commit} tokenizer.json`],
    );
    await damage();
    await hub[Symbol.asyncDispose]();
    await rejects(get(first.name, { recorded: first.files }), /cannot be reached .* no whole copy/);
    await rejects(get(), /cannot be reached .* no whole copy/);
  }));

Deno.test("fetchFromHub() refuses bytes that are not the hub's, and keeps none of them", () => {
  const state = { on: true };
  return inPlace(async (place) => {
    await rejects(
      place.get(),
      /its file 'model-1\.safetensors' arrives with different bytes than the hub lists\. Fix: /,
    );
    state.on = false;
    await checkWhole(place, await place.get());
  }, {
    intercept: ({ method, path }, answer) => {
      if (!state.on || method !== "GET" || path !== "model-1.safetensors") return undefined;
      return new Response(new Uint8Array(WEIGHTS.length), { headers: answer().headers });
    },
  });
});

Deno.test("two fetches at once of one model fetch each file once", () =>
  inPlace(async (place) => {
    const { hub, get } = place;
    const [one, two] = await Promise.all([get(), get()]);
    deepStrictEqual(one, two);
    await checkWhole(place, one);
    const fetched = hub.lines.filter((line) => line.startsWith("GET") && line.includes("-"));
    deepStrictEqual(fetched.length, 2, fetched.join("\n"));
  }));

Deno.test("the token reaches the hub, and code is fetched only if it may run", () =>
  inPlace(async ({ hub, get }) => {
    const plain = await get(NAME, { env: { HF_TOKEN: "secret" } });
    deepStrictEqual([...new Set(hub.asked.map(({ token }) => token))], ["secret"]);
    const coded = await get(NAME, { code: true });
    deepStrictEqual(
      coded.files.filter(({ path }) => !plain.files.some((file) => file.path === path)).map((
        file,
      ) => file.path),
      ["modeling_own.py"],
    );
  }));

Deno.test("fetchFromHub() with an environment that cannot fetch says what its process said", () =>
  rejects(
    fetchFromHub(python, [], { download: true, env: { PYTHONPATH: "" } }),
    /^InfrastructureError: Cannot fetch from the hub with .* its process ended: .*No module named/,
  ));
