/**
 * Each setting of each block of each flow, changed alone, changes what is received: how workers are
 * started, the arguments of their operations, the rows, and what stages are given. What workers
 * receive is whole (`wire/types.py`), so no default of a worker can stand in for a setting's.
 */
import {
  deepStrictEqual,
  doesNotMatch,
  notStrictEqual,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { type Config, type Flow, FLOWS, parseConfig, valueAt } from "../../configs/mod.ts";
import { ArtifactStore, Engine, OutOfMemoryError, provide } from "../../engine/mod.ts";
import {
  Critic,
  flowDefinition,
  Paths,
  Rewards,
  Rows,
  Sampler,
  Trainer,
  Trainers,
} from "../../flows/mod.ts";
import { FLOW_GRAPHS } from "../../flows/table.ts";
import { rowTables } from "../../runs/session/row_tables.ts";
import { workerBlocks } from "../../runs/session/worker_blocks.ts";
import { WorkerGroups } from "../../runs/session/worker_groups.ts";
import {
  type FakeHook,
  FakeSampler,
  FakeTrainer,
  MemoryStore,
  writeFakeModel,
} from "../../testing/mod.ts";
import {
  type CallOptions,
  type GroupSpec,
  groupSpec,
  type Operator,
  placeGpus,
  plannedGroups,
  Workers,
} from "../../workers/mod.ts";
import { changedAt, type Leaf, leaves, otherValues } from "../configs/each_setting.ts";
import { scoredItem, scratch } from "./fixtures.ts";

type Fields = Record<string, unknown>;
type Settings = Config & Fields;

const MACHINE = { env: {}, devices: [0, 1, 2, 3, 4, 5].map((n) => `nvidia${n}`) };
/** Hashes have paths in them, so all runs lie in one directory, one after the other. */
const DIR = await scratch();

const here = (name: string) => `${DIR}/${name}`;

/** Stands for another file or directory than the one that is there. */
const OTHER = "other";

/** Answers what the reward worker is asked. */
const scoring: Operator = {
  call(_op, args) {
    const { items } = args as { items: { id: string }[] };
    const results = items.map(({ id }) => scoredItem({ id, score: Number(id) / 2 }));
    return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
  },
};

function row(n: number, file: string): string {
  const answers = { answer: String(n), completion: `${n} good`, chosen: `${n} good` };
  const others = { rejected: `${n} bad`, margin: 1, other: `${file} ${n}` };
  return JSON.stringify({ id: `${file}-${n}`, prompt: `say ${n}`, ...answers, ...others });
}

/** What a run finds when it starts. */
async function writeFiles(): Promise<void> {
  await Deno.remove(DIR, { recursive: true }).catch(() => {});
  for (const [name, weight] of [["model", 0.5], [OTHER, 0.25]] as const) {
    await writeFakeModel(`${DIR}/${name}`, weight);
  }
  const write = (name: string, rows: string[]) =>
    Deno.writeTextFile(`${DIR}/${name}`, `${rows.join("\n")}\n`);
  await write("apart.jsonl", ['{"prompt":"of no row"}']);
  for (const name of ["train.jsonl", "eval.jsonl", "held.jsonl", "other.jsonl"]) {
    await write(name, Array.from({ length: 12 }, (_, n) => row(n, name)));
  }
  await write("twice.jsonl", [row(0, "twice"), row(0, "twice"), row(1, "twice")]);
}

/** Without room for the first step that a trainer is asked to take. */
function roomless(): FakeHook {
  let steps = 0;
  return ({ op }, phase) => {
    if (op !== "train" || phase !== "begin" || steps++ > 0) return;
    throw new OutOfMemoryError("no room", { run: "run", exception: "E", signal: null });
  };
}

/** A run's groups, of fakes; `reached`: how hub, agent and groups are started, and what they do. */
function groupsOf(config: Fields, { artifacts, reached, hook }: GroupParts) {
  const fakes = (group: string) => {
    if (group === "reward") return scoring;
    return group.startsWith("sampler") ? new FakeSampler() : new FakeTrainer({ artifacts, hook });
  };
  const group = (spec: GroupSpec) => {
    reached.push(JSON.stringify(spec));
    const fake = fakes(spec.group);
    return {
      call: (op: string, args: unknown, options: CallOptions) => {
        // Which stage finds that a model must be loaded is a matter of time.
        reached.push(JSON.stringify([spec.group, op === "load" ? null : options.key, op, args]));
        return fake.call(op, args, options);
      },
      holds: () => Promise.resolve(false),
      ready: async () => ({
        info: { numerics: fake instanceof FakeTrainer ? await fake.numerics(1) : null },
      }),
    };
  };
  Workers.start = ({ artifacts: _, ...options }) => {
    reached.push(JSON.stringify(options));
    return Promise.resolve({ group, dismissInherited() {}, stop() {} } as unknown as Workers);
  };
  return new WorkerGroups({
    run: "run",
    home: DIR,
    blocks: workerBlocks(config)!,
    artifacts,
    recorded: [],
    python: (kind, userPython) => Promise.resolve(userPython ?? kind),
  });
}

/** How each group is started on a machine with GPUs. */
function specs(config: Fields): unknown[] {
  const planned = [...plannedGroups(workerBlocks(config)!).values()];
  const places = placeGpus(planned, MACHINE);
  return planned.map((group) =>
    groupSpec(group.role, group, {
      python: group.python ?? "managed",
      gpus: places[group.group],
    })
  );
}

type GroupParts = { artifacts: ArtifactStore; reached: string[]; hook?: FakeHook };

/**
 * What the workers of a run and its stages receive, and its rows. @throws If the run is not done.
 */
async function received(config: Settings, hook?: FakeHook): Promise<string> {
  await writeFiles();
  const [store, artifacts] = [new MemoryStore(), new ArtifactStore(`${DIR}/artifacts`)];
  const reached: string[] = [];
  const rows = await rowTables(config, { home: DIR });
  const start = Workers.start;
  const groups = groupsOf(config, { artifacts, reached, hook });
  const dirs = { publications: here("p"), checkpoints: here("checkpoints/run"), run: here("r") };
  const resources = [
    provide(Rows, rows),
    provide(Paths, { home: DIR, owner: null, ...dirs }),
    provide(Trainer, groups.trainer),
    provide(Trainers, groups.trainers),
    ...(groups.critic ? [provide(Critic, groups.critic)] : []),
    provide(Sampler, groups.sampler),
    provide(Rewards, groups.rewards),
  ];
  const engine = new Engine({ store, artifacts, resources });
  const definition = flowDefinition(config.flow);
  await engine.create(definition, config, { id: "run" });
  groups.start(1);
  const outcome = await engine.execute("run", definition.build(config));
  await groups.stop();
  Workers.start = start;
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const read = await Promise.all(
    Object.entries(rows).map(async (
      [split, table],
    ) => [split, table.size, table.digest, await table.rows([0])]),
  );
  const stages = store.rows("run").flatMap(({ kind, key, input_hash }) =>
    kind === "intent" || kind === "result" ? [`${kind} ${key} ${input_hash}`] : []
  );
  return JSON.stringify([specs(config), read, [...new Set(reached)].toSorted(), stages.toSorted()]);
}

const held = ["eval", "held"].map((name) => ({ path: here(`${name}.jsonl`) }));
const data = { train: [{ path: here("train.jsonl") }], eval: held };
const reward = [
  { name: "length", max: 8 },
  { name: "gsm8k" },
  { name: "exact_match" },
  { name: "characters_in_place" },
  { name: "python", source: "a.py:f", label: "f" },
  { name: "reward_model", path: here(OTHER) },
];
const checkpoints = { every_rounds: 1, keep_best: { metric: "reward/mean" } };
const whole = { trainer: { lora: {} }, checkpoints };
const sizes = { rounds: 2, prompts_per_round: 2, samples_per_prompt: 2 };
const warmup = { rounds: 2, rows_per_round: 2 };
const model = { path: here("model") };
/** It has a value model, and scores what a reference says. */
const PPO = { name: "ppo", kl_coef: 0.1 };

const evaluate = { samples_per_prompt: 2 };
const CONFIGS: Record<Flow, Fields> = {
  online: { ...sizes, model, data, algorithm: PPO, reward, evaluate, ...whole },
  supervised: { rounds: 2, rows_per_round: 2, model, data, reward, evaluate, ...whole },
  evaluate: { model, data: { eval: data.eval }, reward, evaluate, trainer: { lora: {} } },
  quickstart: {
    warmup,
    online: sizes,
    algorithm: PPO,
    reward,
    evaluate: { problems: 4 },
    ...whole,
  },
  preference: { rounds: 2, pairs_per_round: 2, model, data, evaluate: {}, checkpoints },
  prepare: {
    output: here("prepared"),
    inputs: [{ path: here("train.jsonl") }],
    tokenizer: model,
    lengths: { prompt_tokens_max: 4000 },
    decontaminate: { sets: [{ path: here("apart.jsonl") }] },
  },
};

function configOf(flow: Flow, more: Fields = {}): Settings {
  return FLOWS[flow].parse({ flow, ...CONFIGS[flow], ...more }) as unknown as Settings;
}

/** Configurations in which one setting is another; none: it has no other value. */
function otherConfigs(config: Settings, leaf: Leaf): Settings[] {
  const files = [here("other.jsonl"), here(OTHER)].filter((path) =>
    leaf.schema.safeParse(path).success
  );
  const name = leaf.path.at(-1)!;
  const values = name === "path" ? files : name === "output" // Not in the working directory.
    ? [here("other_output")]
    : otherValues(leaf);
  return values.map((value) => changedAt(config, leaf.path, value))
    .filter((changed) => FLOWS[config.flow].safeParse(changed).success);
}

/** What reads a setting needs more of a configuration, or of what happens. */
type Case = { only?: string; more?: Fields; hook?: () => FakeHook };

/** The settings of a flow that, changed alone, change nothing that is received. */
async function silent(flow: Flow, { only = "", more = {}, hook }: Case = {}): Promise<string[]> {
  const config = configOf(flow, more);
  const plain = await received(config, hook?.());
  const found: string[] = [];
  for (const leaf of leaves(FLOWS[flow], config)) {
    const path = leaf.path.join(".");
    const [changed] = path.startsWith(only) ? otherConfigs(config, leaf) : [];
    // A run that fails of it has read it.
    const now = changed && await received(changed, hook?.()).catch(() => "");
    if (now === plain) found.push(path);
  }
  return found;
}

const ALL = Object.keys(FLOW_GRAPHS) as Flow[];

Deno.test("the same configuration is received alike, however often", async () => {
  for (const flow of ALL) {
    strictEqual(await received(configOf(flow)), await received(configOf(flow)), flow);
  }
});

const PAIRS = { name: "reward_model" };
const TWICE = { train: [{ path: here("twice.jsonl"), duplicates: "skip" }], eval: held };
type Work = [Flow, string, Case];
/** Settings that need more of a run than most. */
const MORE: Work[] = [
  ...ALL.filter((flow) => "recovery" in FLOWS[flow].shape && flow !== "evaluate").map((
    flow,
  ): Work => [flow, "recovery.", { hook: roomless }]),
  ["preference", "task.", { more: { task: {}, data: undefined } }],
  ["preference", "model.", { more: { model: { recipe: "tiny_qwen" } } }],
  ["supervised", "model.", { more: { model: { recipe: "tiny_qwen" } } }],
  ["preference", "trainer.lora.", { more: { algorithm: PAIRS, trainer: { lora: {} } } }],
  ["preference", "warmup.", { more: { algorithm: PAIRS, warmup } }],
  ["online", "data.train.0.duplicates", { more: { data: TWICE } }],
];

/** What no worker and no stage is given: the run's head has the name, a rule reads the other. */
const ELSEWHERE = ["name", "rollouts.allow_truncated_sampling"];
/** It takes no step, so nothing reads how steps are taken. */
const UNTRAINED = [
  "recovery.allow_replan",
  ...["micro_batch_tokens_max", "non_finite_max", "updates_per_batch", "epochs_per_batch"].map((
    name,
  ) => `trainer.${name}`),
];
/** Of settings that every flow has: what nothing does in it. */
const IDLE: Partial<Record<Flow, string[]>> = {
  evaluate: UNTRAINED,
  preference: ["workers.generate_timeout_s"],
  prepare: ["workers.generate_timeout_s"],
};

for (const flow of ALL) {
  Deno.test(`every setting of ${flow}, changed alone, reaches what reads it`, async () => {
    const elsewhere = ELSEWHERE.filter((path) =>
      valueAt(configOf(flow), path.split(".").slice(0, -1)) &&
      !(flow === "prepare" && path === "name") // Its card has the name.
    );
    const unread = [...elsewhere, ...IDLE[flow] ?? []];
    const below = MORE.filter(([of]) => of === flow).map(([, only]) => only);
    const found = (await silent(flow)).filter((path) =>
      !below.some((only) => path.startsWith(only))
    );
    deepStrictEqual(found.toSorted(), unread.toSorted());
  });
}

for (const [flow, only, more] of MORE) {
  Deno.test(`every setting of ${flow} below ${only}, changed alone, reaches what reads it`, async () => {
    deepStrictEqual(await silent(flow, { only, ...more }), []);
  });
}

for (const [name, { config }] of Object.entries(ALGORITHMS)) {
  const flow = ALL.find((one) =>
    FLOWS[one].safeParse({ flow: one, ...CONFIGS[one], algorithm: { name } }).success
  )!;
  Deno.test(`every setting of ${name}, changed alone, reaches what reads it`, async () => {
    const found = await silent(flow, { only: "algorithm.", more: { algorithm: { name } } });
    deepStrictEqual(found, [], `of ${Object.keys(config.shape).length}`);
  });
}

Deno.test("rollouts.allow_truncated_sampling reaches the rule that reads it", async () => {
  const text = JSON.stringify(configOf("online", { sampler: { top_p: 0.9 } }));
  const parsed = (allowed: boolean) =>
    parseConfig(text, { file: "f", overrides: [`rollouts.allow_truncated_sampling=${allowed}`] });
  await rejects(parsed(false), /allow_truncated_sampling/);
  const why = await parsed(true).then(() => "", String);
  doesNotMatch(why, /allow_truncated_sampling/);
});

Deno.test("a setting that reaches nothing would be found", async () => {
  const plain = await received(configOf("online"));
  strictEqual(await received(configOf("online", { recovery: { allow_replan: false } })), plain);
  notStrictEqual(await received(configOf("online", { seed: 4 })), plain);
});
