import { type ArtifactRef, Optimizer, type Policy } from "../../../data/mod.ts";
import { ArtifactStore, InfrastructureError, ManualClock } from "../../../engine/mod.ts";
import {
  type Caller,
  type Operator,
  PolicyTrainer,
  type VersionNote,
} from "../../../workers/mod.ts";
import { FakeTrainer, writeFakeModel } from "../../../testing/mod.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });

type Recorded = { kind: string; key: string; value: unknown };

/** A trainer over fake ranks, with the rows that stages would have recorded. */
export class TrainerBench {
  readonly dir = Deno.makeTempDirSync({ prefix: "policy_trainer_" });
  readonly artifacts = new ArtifactStore(`${this.dir}/artifacts`);
  readonly clock = new ManualClock();
  readonly rows: Recorded[] = [];
  readonly recoveries: Record<string, unknown>[] = [];
  ranks = new FakeTrainer({ artifacts: this.artifacts });
  allow_replan = true;
  group: string | undefined;
  /**
   * Trainers on another number of ranks that were started, as they are asked for; null: none can
   * be.
   */
  others: FakeTrainer[] | null = [];
  trainer = this.opened();

  /** The trainer of a new engine: it knows what is recorded. */
  opened(): PolicyTrainer {
    const numerics = (micro_batch_tokens_max: number) =>
      this.ranks.numerics(micro_batch_tokens_max);
    const { artifacts, clock, rows: recorded, allow_replan, group } = this;
    const checkpoints_dir = `${this.dir}/checkpoints`;
    const operator: Operator = Object.assign(this.ranks, {
      withRanks: (ranks: number) => this.#withRanks(ranks),
    });
    const options = {
      operator,
      group,
      artifacts,
      clock,
      numerics,
      recorded,
      checkpoints_dir,
      allow_replan,
    };
    return this.trainer = new PolicyTrainer(options);
  }

  /** New ranks, which hold nothing, with a new engine. */
  restarted(ranks = 1): PolicyTrainer {
    this.ranks = new FakeTrainer({ artifacts: this.artifacts, ranks });
    return this.opened();
  }

  #withRanks(ranks: number): Promise<Operator & { end(): Promise<void> }> {
    if (this.others === null) {
      return Promise.reject(new InfrastructureError("Cannot start because the machine is smaller"));
    }
    const started = new FakeTrainer({ artifacts: this.artifacts, ranks });
    this.others.push(started);
    return Promise.resolve(Object.assign(started, { end: () => Promise.resolve() }));
  }

  kinds(): string[] {
    return this.rows.map(({ kind }) => kind);
  }

  caller(key: string): Caller {
    const record = (kind: string, at: string, value: unknown) => {
      if (kind === "recovery") this.recoveries.push({ at, ...value as Record<string, unknown> });
      else this.rows.push({ kind, key: at, value });
      return Promise.resolve();
    };
    return { key, attempt: 1, record };
  }

  async base(): Promise<Policy> {
    await writeFakeModel(`${this.dir}/model`, 0.5);
    return this.#kept(await this.trainer.base(`${this.dir}/model`, optimizer, this.caller("base")));
  }

  async batch(n: number): Promise<ArtifactRef> {
    return await this.artifacts.putJson({
      kind: "supervised",
      rows: [],
      temperature: n + 1,
      updates: [[0], [1]],
    });
  }

  async train(policy: Policy, n: number): Promise<Policy> {
    const work = { policy, batch: await this.batch(n), loss: await this.batch(0), optimizer };
    return this.#kept(
      await this.trainer.train({ ...work, micro_batch_tokens_max: 64 }, this.caller(`train#${n}`)),
    );
  }

  async save(policy: Policy): Promise<void> {
    const place = { dir: `${this.dir}/checkpoints/${policy.number}`, round: policy.number };
    const value = await this.trainer.save(policy, place, this.caller("save"));
    this.rows.push({ kind: "note/checkpoint", key: policy.version, value });
  }

  async digest(policy: Policy): Promise<string> {
    return (await this.trainer.publish(policy, `${this.dir}/out`, this.caller("publish"))).digest;
  }

  #kept({ policy, note }: { policy: Policy; note: VersionNote }): Policy {
    this.rows.push({ kind: "note/version", key: policy.version, value: note });
    return policy;
  }

  ops(): string {
    return this.ranks.calls.map(({ op }) => op).join(" ");
  }
}

/** base -> 1 -> 2 (checkpoint) -> 3 -> 4, and the weights' digest of version 4. */
export async function fourVersions(
  bench: TrainerBench,
): Promise<{ versions: Policy[]; digest: string }> {
  const versions = [await bench.base()];
  for (let n = 1; n <= 4; n++) {
    versions.push(await bench.train(versions.at(-1)!, n));
    if (n === 2) await bench.save(versions[2]!);
  }
  return { versions, digest: await bench.digest(versions[4]!) };
}
