/**
 * Records a home with this version of Holdfast, for later ones to resume, verify and fork:
 *
 *   deno run -A tests/recorded/record.ts NAME
 *
 * writes tests/recorded/homes/NAME.tar.gz. See README.md beside this file.
 */
import { FLOWS, readConfig } from "../../configs/mod.ts";
import { Engine } from "../../engine/mod.ts";
import { flowDefinition, SHIPPED } from "../../flows/mod.ts";
import { createRun, forkRun, Home, rowTables } from "../../runs/mod.ts";
import { fakeRun, writeFakeModel } from "../../testing/mod.ts";
import { ensureEnvironment, environmentKind } from "../../workers/mod.ts";
import { NUMERICS, RECORDED } from "./homes.ts";

const ROWS = Array.from(
  { length: 8 },
  (_, n) => ({ prompt: `say ${n}`, completion: `${n}${n}`, answer: String(n) }),
);
const PAIRS = ROWS.map(({ prompt, completion }) => ({
  prompt,
  chosen: completion,
  rejected: "no",
}));
const REWARD =
  "def good(completion, row):\n    return float(row['answer'] in completion) + 0.1 * len(completion)\n";
const BROKEN = "def good(completion, row):\n    raise RuntimeError('not written yet')\n";

const MODEL = `
import inspect, os, sys
from holdfast_worker.trainer import create_model
small = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1)
create_model.RECIPES["small"] = {**create_model.RECIPES["tiny_qwen"], **small}
home = {"home": os.path.dirname(sys.argv[1])} if "home" in inspect.signature(create_model.create_model).parameters else {}
create_model.create_model("small", seed=1, directory=sys.argv[1], **home)
`;

const CONFIG = (place: string) => `
flow: online
seed: 1
rounds: 4
prompts_per_round: 4
samples_per_prompt: 2
model: { path: ${place}/model }
data: { train: [{ path: ${place}/rows.jsonl }], eval: [{ path: ${place}/rows.jsonl }] }
algorithm: { name: grpo, kl_coef: 0.05 }
reward: [{ name: "${place}/reward.py:good" }, { name: length, unit: characters, max: 4, weight: 0.1 }]
trainer: { engine: torch, dtype: float32, optimizer: { lr: 0.01 } }
sampler: { engine: huggingface, dtype: float32, tokens_max: 4 }
rollouts: { slab_groups: 1, reward_processes: 1 }
evaluate: { problems: 2, greedy: true }
checkpoints: { every_rounds: 2, keep_last: 2 }
workers: { grace_s: 0 }
`;

/** One run of every flow that this version has, and of what makes rounds differ. */
function fakeConfigs(place: string): Record<string, Record<string, unknown>> {
  const files = {
    train: [{ path: `${place}/rows.jsonl` }],
    eval: [{ path: `${place}/rows.jsonl` }],
  };
  const model = { path: `${place}/fake_model` };
  const common = { seed: 3, model, data: files, checkpoints: { every_rounds: 2, keep_last: 9 } };
  const reward = [{ name: "length", unit: "characters", max: 8 }];
  const online = {
    flow: "online",
    ...common,
    reward,
    rounds: 4,
    prompts_per_round: 2,
    samples_per_prompt: 2,
    trainer: { optimizer: { lr: 0.1 } },
    rollouts: { slab_groups: 1 },
    algorithm: { name: "grpo" },
  };
  const taught = { rounds: 2, rows_per_round: 2 };
  const all: Record<string, Record<string, unknown>> = {
    fake_grpo: {
      ...online,
      algorithm: { name: "grpo", kl_coef: 0.1 },
      evaluate: { problems: 2, samples_per_prompt: 2 },
    },
    fake_sft: { flow: "supervised", ...common, ...taught, reward, evaluate: { problems: 2 } },
    fake_evaluate: {
      flow: "evaluate",
      model,
      data: { eval: files.eval },
      reward,
      evaluate: { samples_per_prompt: 2 },
    },
    fake_quickstart: {
      flow: "quickstart",
      seed: 3,
      warmup: taught,
      reward,
      evaluate: { problems: 2 },
      online: { rounds: 2, prompts_per_round: 2, samples_per_prompt: 2 },
      checkpoints: common.checkpoints,
    },
    fake_ppo: {
      ...online,
      algorithm: { name: "ppo", kl_coef: 0.1 },
      trainer: { optimizer: { lr: 0.1 }, updates_per_batch: 2, epochs_per_batch: 2 },
    },
    fake_dapo: { ...online, algorithm: { name: "dapo" } },
    fake_dpo: {
      flow: "preference",
      ...common,
      rounds: 2,
      pairs_per_round: 2,
      evaluate: { pairs: 2 },
      warmup: taught,
      data: { train: [{ path: `${place}/pairs.jsonl` }], eval: [{ path: `${place}/pairs.jsonl` }] },
    },
  };
  const names = (config: Record<string, unknown>) =>
    FLOWS[config.flow as keyof typeof FLOWS]?.safeParse(config).success ?? false;
  return Object.fromEntries(Object.entries(all).filter(([, config]) => names(config)));
}

async function writeInputs(place: string, python: string): Promise<void> {
  const lines = (rows: unknown[]) => rows.map((row) => JSON.stringify(row) + "\n").join("");
  await Deno.writeTextFile(`${place}/rows.jsonl`, lines(ROWS));
  await Deno.writeTextFile(`${place}/pairs.jsonl`, lines(PAIRS));
  await Deno.writeTextFile(`${place}/reward.py`, REWARD);
  await Deno.writeTextFile(`${place}/grpo.yaml`, CONFIG(place));
  await writeFakeModel(`${place}/fake_model`, 0.5);
  for (const name of ["config.json", "model.safetensors"]) {
    await Deno.writeTextFile(`${place}/fake_model/${name}`, "");
  }
  const workers = new URL("../../workers/python", import.meta.url).pathname;
  await command(python, ["-c", MODEL, `${place}/model`], { PYTHONPATH: workers });
}

async function command(
  name: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<number> {
  const child = new Deno.Command(name, { args, env: { ...NUMERICS, ...env }, stdin: "null" })
    .spawn();
  return (await child.status).code;
}

async function recordFakes(home: Home, place: string): Promise<void> {
  for (const [id, config] of Object.entries(fakeConfigs(place))) {
    const flow = config.flow as keyof typeof FLOWS;
    await createRun(home, flowDefinition(flow), {
      config: FLOWS[flow].parse(config),
      id,
      entry: `${SHIPPED}${flow}`,
    });
    await executeFake(home, id);
  }
  const { id: child } = await forkRun(home, (await home.store.head("fake_grpo"))!, {
    round: 1,
    id: "fake_fork",
  });
  await executeFake(home, child);
}

async function executeFake(home: Home, id: string): Promise<void> {
  const { store, artifacts } = home;
  const config = readConfig(JSON.parse((await store.head(id))!.config));
  const { resources } = await fakeRun({
    store,
    artifacts,
    run: id,
    dir: `${home.dir}/fakes/${id}`,
    rows: await rowTables(config, { home: home.dir }),
  });
  const { status } = await new Engine({ store, artifacts, resources }).execute(
    id,
    flowDefinition(config.flow).build(config),
  );
  console.log(`${id} ${status}`);
}

async function recordReal(place: string): Promise<void> {
  const main = new URL("../../cli/main.ts", import.meta.url).pathname;
  const rl = (args: string[], env: Record<string, string> = {}) =>
    command(
      Deno.execPath(),
      ["run", "-A", "--quiet", main, ...args, "--home", `${place}/home`],
      env,
    );
  const run = (id: string, env: Record<string, string> = {}) =>
    rl(["run", `${place}/grpo.yaml`, "--id", id], env);
  const events = `${place}/events.jsonl`;
  await run("done", { HOLDFAST_EVENTS: events });
  type Event = { place: string; event: string; n: number; phase: string };
  const appends = (await Deno.readTextFile(events)).trim().split("\n").map((line) =>
    JSON.parse(line) as Event
  )
    .filter(({ place, event }) => place === "engine" && event === "append");
  await Deno.remove(events);
  const saved = appends.findIndex(({ phase }) => phase === "checkpoint");
  const { n } = appends.slice(saved).find(({ phase }) => phase === "training")!;
  await run("cut", { HOLDFAST_FAULT: `kill:engine@append:${n}` });
  await Deno.writeTextFile(`${place}/reward.py`, BROKEN);
  await run("failed");
  await Deno.writeTextFile(`${place}/reward.py`, REWARD);
}

if (import.meta.main) {
  const [name] = Deno.args;
  if (!name) throw new Error("Cannot record without a name");
  const place = `${RECORDED}/${name}`;
  // Not there, if no earlier recording was cut off.
  await Deno.remove(place, { recursive: true }).catch(() => {});
  await Deno.mkdir(`${place}/home`, { recursive: true });
  await writeInputs(place, await ensureEnvironment(environmentKind("torch")));
  await recordReal(place);
  const home = Home.open(`${place}/home`);
  await recordFakes(home, place);
  await home.close();
  await Deno.remove(`${place}/home/logs`, { recursive: true });
  const homes = new URL("homes/", import.meta.url).pathname;
  await Deno.mkdir(homes, { recursive: true });
  await command("tar", [
    "-C",
    RECORDED,
    "--owner=0",
    "--group=0",
    "-I",
    "gzip -9",
    "-cf",
    `${homes}${name}.tar.gz`,
    name,
  ]);
}
