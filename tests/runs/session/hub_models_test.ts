import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import type { JournalRow, NewRow, RunHead, Store } from "../../../engine/mod.ts";
import {
  asPinned,
  checkModelCode,
  pinnedModels,
  presentModels,
  withDirectories,
} from "../../../runs/session/hub_models.ts";
import { FakeModelHub } from "../../../testing/mod.ts";
import { fetchFromHub } from "../../../workers/mod.ts";
import { ensureTestEnvironments } from "../../environments.ts";

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const CONFIG = JSON.stringify({ model_type: "qwen2", architectures: ["Qwen2ForCausalLM"] });
const FILES = { "config.json": CONFIG, "tokenizer.json": "{}", "model.safetensors": "weights" };
const COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca";

/** What a configuration says of its models, and of where they are opened. */
const models = (
  path: string,
  { reference = null as string | null, reward = [] as object[] } = {},
) => ({
  model: { path, trust_remote_code: true },
  reference: { path: reference },
  reward,
  trainer: { engine: "torch" as const, device: "cpu" as const, python },
});

async function withHub(
  work: (hub: FakeModelHub, place: { home: string }) => Promise<void>,
): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-hub-models-" });
  const hub = new FakeModelHub();
  const env = { HF_ENDPOINT: hub.url, HF_HOME: home };
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    await work(hub, { home });
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    await hub[Symbol.asyncDispose]();
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("pinnedModels() gives a revision one commit, and fetches code that is trusted", () =>
  withHub(async (hub) => {
    const commit = hub.put("owner/tiny", { ...FILES, "own.py": "" });
    const judge = hub.put("owner/judge", { ...FILES, "own.py": "" });
    const config = models("owner/tiny", {
      reference: "owner/tiny@main",
      reward: [{ name: "reward_model", path: "owner/judge" }, { name: "exact_match" }],
    });
    const pinned = await pinnedModels(config, { download: true });
    const tiny = `owner/tiny@main@${commit}`;
    deepStrictEqual(pinned.config, {
      ...config,
      model: { path: tiny, trust_remote_code: true },
      reference: { path: tiny },
      reward: [{ name: "reward_model", path: `owner/judge@main@${judge}` }, config.reward[1]!],
    });
    deepStrictEqual(
      pinned.models.map(({ files }) => files.map(({ path }) => path).includes("own.py")),
      [true, false],
    );
    deepStrictEqual(hub.lines.filter((line) => /main$/.test(line)), [
      "GET owner/tiny@main",
      "GET owner/judge@main",
    ]);
    const { directory } = pinned.models[0]!;
    strictEqual(withDirectories(pinned.config, pinned.models).reference.path, directory);
    const again = await pinnedModels(pinned.config, { download: false });
    deepStrictEqual(again.config, pinned.config);
  }));

Deno.test("models are fetched without PyTorch", () =>
  withHub(async (hub) => {
    const { HOLDFAST_TEST_HUB_PYTHON: small } = await ensureTestEnvironments();
    hub.put("owner/tiny", FILES);
    const wanted = [{ name: "owner/tiny", code: false, recorded: null }];
    const [model] = await fetchFromHub(small!, wanted, { download: true });
    strictEqual(await Deno.readTextFile(`${model!.directory}/model.safetensors`), "weights");
  }));

Deno.test("pinnedModels() leaves directories as they are, without a process", async () => {
  const config = { ...models("/a/model"), trainer: { python: "/no/such/python" } };
  const pinned = await pinnedModels(config, { download: true });
  deepStrictEqual(pinned, { config, models: [] });
  strictEqual(pinned.config, config);
});

Deno.test("a relative directory is one, and without a trainer nothing is a model", async () => {
  const relative = "tests/runs"; // It is there, and could be the name of a model.
  const { store, head } = journal([]);
  for (const config of [models(relative), { model: { path: "a/b" } }]) {
    const found = await presentModels(store, { head, config }, {});
    deepStrictEqual(found, { models: [], rows: [] });
  }
});

Deno.test("asPinned() gives the recorded commits to the same revisions", () => {
  const recorded = models(`a/b@main@${COMMIT}`, { reference: "/dir" });
  strictEqual(asPinned(models("a/b"), recorded).model.path, recorded.model.path);
  strictEqual(asPinned(models("a/b@main"), recorded).model.path, recorded.model.path);
  for (const path of ["a/b@v2", "a/c", "/dir", `a/b@main@${COMMIT.replace("c", "d")}`]) {
    const config = models(path, { reference: "a/b" });
    deepStrictEqual(asPinned(config, recorded), config, path);
  }
});

/** A run's rows, as far as they are about models. */
function journal(rows: NewRow[]): { store: Store; head: RunHead } {
  const read = () => Promise.resolve(rows.map((row, seq) => ({ ...row, seq }) as JournalRow));
  return { store: { read } as unknown as Store, head: { id: "run", parent: null } as RunHead };
}

Deno.test("presentModels() records a model once, and then needs no network", () =>
  withHub(async (hub, { home }) => {
    const commit = hub.put("owner/tiny", FILES);
    const { config } = await pinnedModels(models("owner/tiny"), { download: false });
    const name = `owner/tiny@main@${commit}`;
    const fresh = journal([]);
    const found = await presentModels(fresh.store, { head: fresh.head, config }, {});
    const [row] = found.rows as [NewRow & { value: string }];
    deepStrictEqual([found.rows.length, row.kind, row.key], [1, "note/model", name]);
    const { digest, bytes, files } = found.models[0]!;
    deepStrictEqual(JSON.parse(row.value), { digest, bytes, files });
    hub.put("owner/tiny", { ...FILES, "tokenizer.json": "[]" });
    const known = journal(found.rows);
    hub.asked.length = 0;
    const later = await presentModels(known.store, { head: known.head, config }, {});
    deepStrictEqual([later.rows, later.models], [[], found.models]);
    strictEqual(hub.lines.join(), "");
    await Deno.remove(`${home}/hub`, { recursive: true }); // As on a different host.
    const fetched = await presentModels(known.store, { head: known.head, config }, {});
    deepStrictEqual(fetched.models, found.models);
    match(hub.lines.join(), RegExp(`GET owner/tiny@${commit} model.safetensors`));
  }));

Deno.test("presentModels() refuses a model that was recorded without a commit", async () => {
  const { store, head } = journal([]);
  await rejects(presentModels(store, { head, config: models("owner/tiny") }, {}), {
    name: "InvalidInputError",
    message:
      "Cannot run 'run' because its model 'owner/tiny@main' was recorded without a commit: " +
      "another version could arrive at the next start. Fix: give createRun the configuration " +
      "that pinnedModels returns",
  });
});

Deno.test("checkModelCode() refuses a directory whose code may not run", async () => {
  const home = await Deno.makeTempDir({ prefix: "holdfast-model-code-" });
  Deno.env.set("HF_MODULES_CACHE", `${home}/modules`);
  try {
    const write = (config: object) =>
      Deno.writeTextFile(`${home}/config.json`, JSON.stringify(config));
    const config = models(home);
    const untrusted = { ...config, model: { path: home, trust_remote_code: false } };
    await write({ model_type: "own", auto_map: { AutoConfig: "modeling_own.OwnConfig" } });
    await rejects(
      checkModelCode(untrusted, { models: [] }),
      /^InvalidInputError: Cannot open model '.*' because it needs its own Python code/,
    );
    await rejects(
      checkModelCode(config, { models: [] }),
      /because its code modeling_own\.py cannot be loaded: /,
    );
    await Deno.writeTextFile(`${home}/modeling_own.py`, "raise SystemExit('it ran')");
    await checkModelCode(config, { models: [] });
    await write({ model_type: "own" });
    const nowhere = { ...config, trainer: { python: "/no/such/python" } };
    await checkModelCode(nowhere, { models: [] });
  } finally {
    Deno.env.delete("HF_MODULES_CACHE");
    await Deno.remove(home, { recursive: true });
  }
});
