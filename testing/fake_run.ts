/**
 * For tests of graphs: a run's resources without Python, over the fake trainer and samplers of the
 * workers' room.
 */
import {
  type ArtifactStore,
  type Clock,
  provide,
  type Provided,
  type Store,
  systemClock,
} from "../engine/mod.ts";
import { PolicySampler, type Republish, RewardScorer } from "../rollouts/mod.ts";
import { FakeSampler } from "./fake_sampler.ts";
import { FakeTrainer } from "./fake_trainer.ts";
import { type Operator, PolicyTrainer, recordedRows, type RestartCause } from "../workers/mod.ts";
import {
  Critic,
  Paths,
  Rewards,
  Rows,
  type RowTables,
  Sampler,
  Trainer,
  Trainers,
} from "../flows/mod.ts";
import { residentRows } from "../runs/mod.ts";

export type FakeRunOptions = {
  store: Store;
  run: string;
  artifacts: ArtifactStore;
  /** Where checkpoints, publications and exports lie. */
  dir: string;
  rows: RowTables;
  clock?: Clock;
  trainer?: FakeTrainer;
  /** The value model's, for algorithms that have one. */
  critic?: FakeTrainer;
  samplers?: FakeSampler[];
  restart?: RestartCause;
  /** recovery.allow_replan; true by default. */
  allow_replan?: boolean;
  /** trainer.non_finite_max; without it skipped steps have no limit. */
  non_finite_max?: number;
  /** Answers `score` of rewards in Python; none by default. */
  pool?: Operator;
};
export type FakeRun = {
  trainer: FakeTrainer;
  critic: FakeTrainer;
  samplers: FakeSampler[];
  resources: Provided[];
};

/**
 * The resources of one engine's start at a run. A start after a crash gets new workers that hold
 * nothing, as real ones would.
 *
 * @example
 * ```ts
 * const tables = { train: tableOf(rows, "digest") };
 * const { resources } = await fakeRun({ store, run: "a", artifacts, dir, rows: tables });
 * const engine = new Engine({ store, artifacts, resources });
 * const outcome = await engine.execute("a", online.build(config));
 * ```
 */
export async function fakeRun(options: FakeRunOptions): Promise<FakeRun> {
  const { store, run, artifacts, dir, rows, clock = systemClock, pool = null } = options;
  const { trainer = new FakeTrainer({ artifacts }), critic = new FakeTrainer({ artifacts }) } =
    options;
  const samplers = options.samplers ?? [new FakeSampler()];
  const head = await store.head(run);
  const recorded = recordedRows(head ? await residentRows(store, head) : []);
  const checkpoints_dir = `${dir}/checkpoints`;
  const { allow_replan, non_finite_max, restart } = options;
  const common = {
    artifacts,
    clock,
    recorded,
    checkpoints_dir,
    allow_replan,
    non_finite_max,
    restart,
  };
  const on = (operator: FakeTrainer) => ({
    operator,
    numerics: (tokens: number) => operator.numerics(tokens),
    ...common,
  });
  const policyTrainer = new PolicyTrainer(on(trainer));
  const valueTrainer = new PolicyTrainer({
    ...on(critic),
    group: "critic",
    block: "value_model",
    head: "value",
  });
  const republish: Republish = ({ policy, publication }, caller) =>
    policyTrainer.publish(policy, publication.dir, caller);
  const resources = [
    provide(Rows, rows),
    provide(Paths, {
      home: dir,
      owner: null,
      run: `${dir}/run`,
      checkpoints: checkpoints_dir,
      publications: `${dir}/publications`,
    }),
    provide(Trainer, policyTrainer),
    provide(Critic, valueTrainer),
    provide(Trainers, [policyTrainer, valueTrainer]),
    provide(Sampler, new PolicySampler({ operators: samplers, republish })),
    provide(Rewards, new RewardScorer({ pool, artifacts })),
  ];
  return { trainer, critic, samplers, resources };
}
