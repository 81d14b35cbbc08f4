/** Whatever opens a run's model or calls its rewards does so with the run's own interpreter. */
import { rejects, strictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { parseRewards } from "../../../configs/mod.ts";
import { processOwner, type RunHead } from "../../../engine/mod.ts";
import { type Home, mergeAdapter, rescoreRun, tryReward, verifyRun } from "../../../runs/mod.ts";
import { settingsRows } from "../../../runs/session/settings.ts";
import { tryAlgorithm } from "../../../runs/trials/try_algorithm.ts";
import { fetchingPython, trainerPython } from "../../../runs/session/trainer_python.ts";
import { environmentsDir } from "../../../workers/mod.ts";
import { usedPlaces } from "../../../workers/environments/environments.ts";
import { basePython } from "../../../workers/environments/python_interpreter.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

/** An interpreter that cannot be used tells that it was asked for. */
const RECORDED = "/recorded/python";
const RESUMED = "/resumed/python";
const FUNCTION = new URL("../../../examples/my_reward.py", import.meta.url).pathname +
  ":digits_in_place";

const COMMANDS: Record<string, (home: Home, head: RunHead) => Promise<unknown>> = {
  "adapter merge": async (home, head) => {
    const final = `${home.dir}/runs/${head.id}/final`;
    await Deno.mkdir(final, { recursive: true });
    await Deno.writeTextFile(`${final}/adapter_config.json`, "{}");
    await mergeAdapter(home, head, { target: null });
  },
  "loss try": (home, head) => {
    const algorithm = AlgorithmChoice.parse({ name: "grpo" });
    return tryAlgorithm(home, head, { round: 1, algorithm, model: null, json: true });
  },
  "rescore": async (home, head) => {
    const rewards = parseRewards(FUNCTION, "/");
    const { failures } = await rescoreRun(home, head, { rewards });
    throw new Error(JSON.stringify(failures));
  },
  "verify": (home, head) => verifyRun(home, head),
};

/** A run whose trainer has its own interpreter; `resumed`: and then a different one. */
async function done({ resumed }: { resumed: boolean }): Promise<{ home: Home; head: RunHead }> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1, trainer: { python: RECORDED } });
  await executeFake(home, "a");
  if (resumed) {
    const path = "trainer.python";
    const rows = settingsRows([{ path, read_by: "workers", from: RECORDED, to: RESUMED }]);
    const how = { lease_ms: 60_000, ended: true };
    const { epoch } = (await home.store.claim("a", processOwner(), how)).head;
    await home.store.append("a", epoch, rows);
  }
  return { home, head: (await home.store.head("a"))! };
}

for (const [name, command] of Object.entries(COMMANDS)) {
  Deno.test(`${name} uses the interpreter that the run names, or its last resume`, async () => {
    for (const resumed of [false, true]) {
      const { home, head } = await done({ resumed });
      const interpreter = resumed ? RESUMED : RECORDED;
      await rejects(
        command(home, head),
        new RegExp(`interpreter '${interpreter}' because it does not run`),
      );
      await home.close();
    }
  });
}

Deno.test("reward test uses the interpreter of the configuration that has the rows", async () => {
  const home = await freshFakeHome();
  await Deno.writeTextFile(`${home.dir}/rows.jsonl`, '{"prompt": "?", "answer": "7"}\n');
  const data = `${home.dir}/own.yaml`;
  const config = {
    name: "own",
    flow: "online",
    model: { path: `${home.dir}/model` },
    data: { train: [{ path: `${home.dir}/rows.jsonl` }] },
    reward: [{ name: "exact_match" }],
    rounds: 1,
    prompts_per_round: 1,
    samples_per_prompt: 2,
    algorithm: { name: "grpo" },
    trainer: { python: RECORDED },
  };
  await Deno.writeTextFile(data, JSON.stringify(config));
  const options = { data, count: 1, home: home.dir };
  await rejects(tryReward(FUNCTION, options), new RegExp(`interpreter '${RECORDED}'`));
  strictEqual((await tryReward("exact_match", options)).rows, 1);
});

/** A machine without an environment. `onProgress` fails with what is said: nothing is created. */
async function withoutEnvironments(
  work: (place: { dir: string; onProgress: (event: { text: string }) => void }) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-environments-" });
  const before = Deno.env.get("HOLDFAST_ENV_DIR");
  Deno.env.set("HOLDFAST_ENV_DIR", dir);
  const onProgress = ({ text }: { text: string }) => {
    throw new Error(text);
  };
  try {
    await work({ dir, onProgress });
  } finally {
    if (before === undefined) Deno.env.delete("HOLDFAST_ENV_DIR");
    else Deno.env.set("HOLDFAST_ENV_DIR", before);
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("models are fetched without PyTorch, unless the trainer's environment is there", () =>
  withoutEnvironments(async ({ dir, onProgress }) => {
    for (const engine of ["torch", "deepspeed"]) {
      const config = { trainer: { engine, device: "cpu" } };
      await rejects(
        fetchingPython(config, { onProgress }),
        /^Error: Python environment 'hub': .* MiB/,
      );
      await rejects(
        fetchingPython({ trainer: { ...config.trainer, python: RECORDED } }, { onProgress }),
        new RegExp(`interpreter '${RECORDED}' because it does not run`),
      );
      const places = await usedPlaces(environmentsDir(), (await basePython()).build);
      const place = places.find((path) => path.startsWith(`${dir}/${engine}_cpu-`))!;
      await Deno.mkdir(`${place}/bin`, { recursive: true });
      await Deno.writeTextFile(`${place}/bin/python`, "");
      await Deno.writeTextFile(`${place}/packages.json`, "{}"); // It was checked.
      strictEqual(await fetchingPython(config, { onProgress }), `${place}/bin/python`);
    }
  }));

Deno.test("a stop ends the search for an interpreter before anything is created", () =>
  withoutEnvironments(async ({ onProgress }) => {
    const config = { trainer: { engine: "torch", device: "cpu" } };
    const progress = { onProgress, signal: AbortSignal.abort() };
    await rejects(trainerPython(config, progress), { code: "drained" });
    await rejects(fetchingPython({}, progress), { code: "drained" });
    await rejects(fetchingPython(config, progress), { name: "AbortError" });
  }));
