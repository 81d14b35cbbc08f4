/**
 * A DeepSpeed group on two ranks loses a rank in the middle of a step, once by SIGKILL and once by
 * SIGSTOP, and goes on by itself. Its versions, the loss and gradient norm of every step and the
 * weights are those of a run in which nothing happened.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import { tableOf } from "../../data/mod.ts";
import { ArtifactStore, Engine, graph, provide, systemClock } from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { Paths, Rows, Trainer, Trainers } from "../../flows/resources.ts";
import { preparePolicy } from "../../flows/stages/prepare_policy.ts";
import { supervisedRounds } from "../../flows/supervised.ts";
import {
  groupSpec,
  type Loss,
  type Operator,
  PolicyTrainer,
  trainerGroup,
  trainerRole,
  type WorkerGroup,
  Workers,
  type WorkersEvent,
} from "../../workers/mod.ts";
import { withHome } from "../workers/fixtures.ts";

const python = Deno.env.get("HOLDFAST_TEST_DEEPSPEED_PYTHON") ?? "";
const agentPython = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? python;

const ROUNDS = 4;
/** Of one rank in one step: what `config` gives. */
const MICRO_BATCHES = 4;
/** In the middle of the second step, and of the fourth as the processes after it count. */
const FAULTS = `kill:trainer.1@micro_batch:${MICRO_BATCHES + 3},stop:trainer.1@micro_batch:${
  3 * MICRO_BATCHES + 3
}`;
/** More than a load takes on a busy machine: it tells no progress while it reads. */
const NO_PROGRESS_MS = 60_000;
const PLACE = { key: "test", attempt: 1, record: () => Promise.resolve() };

const training = graph("training", SupervisedConfig, (g, config) => {
  const start = g.stage(preparePolicy, {
    model_path: config.model.path!,
    optimizer: config.trainer.optimizer,
  });
  return supervisedRounds(g, config, start);
});

function configOf(zero: number, model: string): SupervisedConfig {
  return SupervisedConfig.parse({
    flow: "supervised",
    rounds: ROUNDS,
    rows_per_round: 2 * MICRO_BATCHES,
    model: { path: model },
    data: { train: [{ path: "none" }] },
    trainer: {
      engine: "deepspeed",
      ranks: 2,
      zero,
      micro_batch_tokens_max: 1,
      device: "cpu",
      optimizer: { lr: 1e-3 },
    },
    checkpoints: { every_rounds: 2 },
    sampler: { engine: "huggingface" },
  });
}

const ROWS = Array.from({ length: 64 }, (_, i) => ({
  row_id: `${i}`,
  prompt: [{ role: "user" as const, content: `${i * 7}` }],
  completion: [{ role: "assistant" as const, content: `${i * 13 % 101}` }],
  columns: {},
}));

type Bench = { home: string; zero: number; operator: Operator; group: WorkerGroup };

/**
 * One run on the group as it is: every version with its steps, the recoveries, and the digest of
 * the last weights.
 */
async function run(name: string, { home, zero, operator, group }: Bench) {
  const [store, artifacts] = [new MemoryStore(), new ArtifactStore(`${home}/artifacts`)];
  const dir = `${home}/${name}`;
  const config = configOf(zero, `${home}/model`);
  const trainer = new PolicyTrainer({
    operator,
    artifacts,
    clock: systemClock,
    checkpoints_dir: `${dir}/checkpoints`,
    recorded: [],
    numerics: async (micro_batch_tokens_max) => {
      const { info } = await group.ready();
      return { ...(info.numerics as Record<string, unknown>), micro_batch_tokens_max } as never;
    },
  });
  const resources = [
    provide(Rows, { train: tableOf(ROWS, "rows") }),
    provide(Paths, {
      home: dir,
      owner: null,
      run: dir,
      checkpoints: `${dir}/checkpoints`,
      publications: `${dir}/publications`,
    }),
    provide(Trainer, trainer),
    provide(Trainers, [trainer]),
  ];
  const engine = new Engine({ store, artifacts, resources, backoff: { first_ms: 0, max_ms: 0 } });
  await engine.create(training, config, { id: name });
  const outcome = await engine.execute(name, training.build(config));
  ok(outcome.status === "done", JSON.stringify(outcome));
  const { digest } = await trainer.publish(outcome.output, `${dir}/last`, PLACE);
  const values = (kind: string) =>
    store.rows(name).filter((row) => row.kind === kind).map((row) => JSON.parse(row.value));
  const versions = store.rows(name).filter((row) => row.kind === "note/version").map((row) =>
    row.key
  );
  const steps = values("note/version").map((note) => note.steps);
  return { versions, steps, digest, recoveries: values("recovery"), failures: values("failure") };
}

/** The trainer's group, with its losses told as a session tells them. */
async function withGroup(
  home: string,
  zero: number,
  work: (bench: Bench) => Promise<void>,
): Promise<void> {
  let loss: Loss | null = null;
  const onEvent = (event: WorkersEvent) => {
    if (event.type === "replaced") loss ??= { cause: event.error.cause_kind, seconds: 0 };
  };
  const env = { HOLDFAST_FAULT: FAULTS };
  const workers = await Workers.start({
    run: "r",
    epoch: 1,
    attempt: 1,
    home,
    python: agentPython,
    env,
    onEvent,
  });
  try {
    const planned = trainerGroup(configOf(zero, `${home}/model`).trainer, { seed: 0 });
    const group = workers.group(
      groupSpec(trainerRole, planned, { python, no_progress_ms: NO_PROGRESS_MS }),
    );
    const operator: Operator = {
      call: (op, args, options) => group.call(op, args, options),
      takeLoss: () => {
        const taken = loss;
        loss = null;
        return taken;
      },
    };
    const model = { recipe: "tiny_qwen", seed: 1, dir: `${home}/model` };
    await group.call("create_model", model, PLACE);
    await work({ home, zero, operator, group });
  } finally {
    await workers.stop();
  }
}

for (const zero of [3, 2, 1]) {
  Deno.test({
    name:
      `ZeRO-${zero} on two ranks: a rank killed and a rank frozen in the middle of a step cost no bit`,
    ignore: python === "",
    fn: () =>
      withHome((home) =>
        withGroup(home, zero, async (bench) => {
          const disturbed = await run("disturbed", bench);
          deepStrictEqual(
            disturbed.recoveries.map((
              { cause, action, batches_redone },
            ) => [cause, action, batches_redone]),
            [["worker_lost", "load_base", 1], ["no_progress", "load_checkpoint", 1]],
          );
          const [killed, frozen] = disturbed.failures.map(({ error }) => error);
          match(
            killed.message,
            /^Cannot run 'train' on trainer because rank 1 failed: The process was killed by SIGKILL/,
          );
          match(
            frozen.message,
            /no progress for \d+ ms: the others wait for rank 1 because its process is stopped\n/,
          );
          deepStrictEqual([killed.facts.rank, frozen.facts.rank, frozen.code], [
            1,
            1,
            "no_progress",
          ]);
          strictEqual(bench.group.generation, 3);
          const calm = await run("calm", bench);
          deepStrictEqual(calm.recoveries.map(({ cause }) => cause), []);
          deepStrictEqual(disturbed.versions, calm.versions);
          deepStrictEqual(disturbed.steps, calm.steps);
          strictEqual(disturbed.digest, calm.digest);
          deepStrictEqual(
            calm.steps.flat().map(({ micro_batches }) => micro_batches),
            Array(ROUNDS).fill(2 * MICRO_BATCHES),
          );
        })
      ),
  });
}
