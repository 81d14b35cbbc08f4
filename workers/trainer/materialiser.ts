import { stepCut } from "../../data/mod.ts";
import {
  BadDataError,
  type Clock,
  InfrastructureError,
  LostRecordError,
} from "../../engine/mod.ts";
import {
  asidePath,
  type FileProblem,
  moveAside,
  problemBehind,
  problemText,
  type SetAside,
} from "./checkpoint_files.ts";
import { Checkpoint, wholeCheckpoint } from "./model_files.ts";
import { trainerRole } from "../roles/trainer.ts";
import { ask, done } from "../ask.ts";
import type { Caller, Operator } from "../operator.ts";
import { rebuild } from "../rebuild.ts";
import type { RestartCause } from "../failures/recovery.ts";
import type { CheckpointNote, RedoStep, Route, VersionChain } from "./version_chain.ts";

type MaterialiserOptions = {
  operator: Operator;
  chain: VersionChain;
  clock: Clock;
  /** Ranks of the operator, once it is ready. */
  worldSize: () => Promise<number>;
  /** Where a checkpoint between two world sizes is written. */
  checkpoints_dir: string;
  /** Directories of checkpoints that are being written. */
  writing: Set<string>;
  /** How the previous engine ended, if there was one. */
  restart: RestartCause;
  /** An earlier engine had loaded something. */
  loaded_before: boolean;
};

type Start = Route["start"];

/** A hash revealed it, before or during the read. */
class DamagedCheckpoint extends Error {
  constructor(readonly checkpoint: CheckpointNote, readonly problem: FileProblem) {
    super(`checkpoint ${checkpoint.dir}: ${problemText(problem)}`);
  }
}

/**
 * Brings a recorded version into the trainer's memory: loads the newest intact checkpoint at or
 * before it, then redoes the recorded batches with their recorded numerics, bit for bit. A damaged
 * checkpoint is set aside and the previous one used, finally the base.
 */
export class Materialiser {
  readonly #options: MaterialiserOptions;
  #loadedBefore: boolean;
  #loadedHere = false;

  constructor(options: MaterialiserOptions) {
    this.#options = options;
    this.#loadedBefore = options.loaded_before;
  }

  /** `held`: the version that the trainer reported to hold. */
  async bring(version: string, held: string | null, caller: Caller): Promise<void> {
    const { operator, clock } = this.#options;
    const started = clock.monotonic();
    const secondsSince = () => (clock.monotonic() - started) / 1000;
    const ahead = await this.#ahead(version, held);
    if (ahead) {
      await this.#redo(operator, ahead, caller);
      const brought = { version, batches_redone: ahead.length, seconds: secondsSince() };
      return await caller.record("recovery", caller.key, {
        cause: "other_version",
        action: "redo",
        ...brought,
      });
    }
    const route = await this.#followed(version, caller);
    const { checkpoint } = route.start;
    const loss = operator.takeLoss?.() ?? null;
    const fresh = route.redo.length === 0 && (checkpoint === null || isStart(route.start)) &&
      (held !== null || !this.#loadedBefore);
    const cause = loss?.cause ?? this.#causeWithoutLoss(held);
    this.#loadedBefore = true;
    this.#loadedHere = true;
    if (fresh && !loss) return;
    await caller.record("recovery", caller.key, {
      ...loss,
      cause,
      action: checkpoint === null ? "load_base" : "load_checkpoint",
      version,
      batches_redone: route.redo.length,
      seconds: loss?.seconds ?? secondsSince(),
    });
  }

  /**
   * The batches between the held version and `version`, if the ranks can continue from it without a
   * load.
   */
  async #ahead(version: string, held: string | null): Promise<RedoStep[] | null> {
    if (held === null) return null;
    const steps = await this.#options.chain.stepsBetween(held, version);
    if (steps === null) return null;
    const worldSize = await this.#options.worldSize();
    return steps.every(({ record }) => record.numerics.world_size === worldSize) ? steps : null;
  }

  #causeWithoutLoss(held: string | null): string {
    if (held !== null) return "other_version";
    return this.#loadedHere ? "worker_lost" : this.#options.restart;
  }

  /** Follows routes until one succeeds. Each round of the loop has one checkpoint less to try. */
  async #followed(version: string, caller: Caller): Promise<Route> {
    for (;;) {
      const route = await this.#options.chain.routeTo(version);
      try {
        await this.#follow(route, caller);
        return route;
      } catch (error) {
        if (!(error instanceof DamagedCheckpoint)) throw error;
        if (isStart(route.start)) throw lostStart(error);
        await this.#setAside(error, caller);
      }
    }
  }

  /**
   * Steps of a different world size are redone on the recorded number of ranks and handed over as a
   * checkpoint.
   */
  async #follow({ start, redo }: Route, caller: Caller): Promise<void> {
    const { operator } = this.#options;
    const worldSize = redo.length === 0 ? 0 : await this.#options.worldSize();
    let from = start;
    for (const steps of byWorldSize(redo)) {
      const ranks = steps[0]!.record.numerics.world_size;
      if (ranks === worldSize) {
        await this.#load(operator, from, caller);
        await this.#redo(operator, steps, caller);
        if (steps.at(-1) === redo.at(-1)) return;
        from = await this.#handOver(operator, steps.at(-1)!, caller);
        continue;
      }
      const begun = from;
      from = await this.#onRanks(ranks, { steps, caller }, async (others) => {
        await this.#load(others, begun, caller);
        await this.#redo(others, steps, caller);
        return await this.#handOver(others, steps.at(-1)!, caller);
      });
    }
    await this.#load(operator, from, caller);
  }

  async #load(
    operator: Operator,
    { id, note, optimizer, checkpoint, model_digest }: Start,
    caller: Caller,
  ): Promise<void> {
    const saved = checkpoint && Checkpoint.strip().parse(checkpoint);
    const start = { version: id, model_path: note.model_path, optimizer, checkpoint: saved };
    const load = { ...start, model_digest: saved === null ? model_digest : null };
    try {
      await rebuild(operator, [trainerRole, { load, redo: [] }], caller);
    } catch (error) {
      const problem = checkpoint && await problemBehind(error, checkpoint);
      throw problem === null ? error : new DamagedCheckpoint(checkpoint!, problem);
    }
  }

  async #setAside(
    { checkpoint, problem, message }: DamagedCheckpoint,
    caller: Caller,
  ): Promise<void> {
    const { chain } = this.#options;
    const { version, dir } = checkpoint;
    const row: SetAside = { dir, to: asidePath(dir), ...problem };
    // Recorded first: after a crash in between the checkpoint is not used.
    await caller.record("note/checkpoint_set_aside", version, row);
    await moveAside(row);
    chain.drop(version, dir);
    caller.emit?.({ log: `${message}. It was set aside as ${row.to}; the previous one is used` });
    const nothing = { batches_redone: 0, seconds: 0 };
    await caller.record("recovery", caller.key, {
      cause: "damaged_checkpoint",
      action: "set_aside",
      version,
      ...nothing,
    });
  }

  async #redo(operator: Operator, steps: RedoStep[], caller: Caller): Promise<void> {
    for (const step of steps) {
      const { parent, batch, loss, optimizer, numerics } = step.record;
      const args = {
        from: parent,
        to: step.id,
        batch,
        loss,
        optimizer,
        micro_batch_tokens_max: numerics.micro_batch_tokens_max,
        ...stepCut(numerics),
        mismatch: null,
        non_finite_max: null,
      };
      const again = { load: null, redo: [{ args, recorded: step.note.steps }] };
      await rebuild(operator, [trainerRole, again], caller).catch(async (error) => {
        if (error instanceof BadDataError) await this.#options.chain.checkArtifacts(step);
        throw error;
      });
    }
  }

  /**
   * A checkpoint of the version that `operator` currently holds: a different number of ranks
   * continues from it.
   */
  async #handOver(
    operator: Operator,
    { id, note, record }: RedoStep,
    caller: Caller,
  ): Promise<Start> {
    const name = `${checkpointName({ number: note.number, version: id })}-handover-${
      crypto.randomUUID().slice(0, 8)
    }`;
    const { chain, checkpoints_dir, writing } = this.#options;
    const args = { version: id, dir: `${checkpoints_dir}/${name}` };
    writing.add(args.dir);
    try {
      const saved = wholeCheckpoint(
        done(await ask(operator, [trainerRole, "save"], args, caller)).answers,
      );
      const checkpoint: CheckpointNote = {
        ...saved,
        number: note.number,
        round: null,
        metric: null,
      };
      await caller.record("note/checkpoint", id, checkpoint);
      chain.addCheckpoint(checkpoint);
      return { id, note, optimizer: record.optimizer, checkpoint, model_digest: null };
    } finally {
      writing.delete(args.dir);
    }
  }

  async #onRanks<T>(
    ranks: number,
    { steps, caller }: { steps: RedoStep[]; caller: Caller },
    work: (operator: Operator) => Promise<T>,
  ): Promise<T> {
    const { operator, chain } = this.#options;
    const others = await operator.withRanks?.(ranks, caller).catch((error) => error as Error);
    if (others && !(others instanceof Error)) {
      try {
        return await work(others);
      } finally {
        await others.end();
      }
    }
    const rounds = chain.checkpoints().map(({ round }) => round).filter((round) => round !== null);
    const newest = rounds.length === 0 ? null : Math.max(...rounds);
    const numbers = `${steps[0]!.note.number} to ${steps.at(-1)!.note.number}`;
    throw new InfrastructureError(
      `Cannot redo the batches ${numbers} because they were trained on ${ranks} ranks, ` +
        `which cannot be started here${others ? `: ${others.message}` : ""}. ` +
        `Resume once with trainer.ranks=${ranks} on a machine that has room for them, ` +
        "or drop these batches: " +
        (newest === null
          ? "no checkpoint was saved, so start a new run"
          : `a fork with N ranks starts from the newest checkpoint, of round ${newest}:\n` +
            `  next: deno task rl fork RUN --round ${newest} trainer.ranks=N`),
      { ranks, round: newest },
      { retryable: false },
    );
  }
}

/** Whether it is what the run started from: before it there is nothing. */
function isStart({ note, checkpoint }: Start): boolean {
  return checkpoint !== null && checkpoint.dir === note.start?.checkpoint.dir;
}

function lostStart({ checkpoint: { version, dir }, problem }: DamagedCheckpoint): LostRecordError {
  return new LostRecordError(
    `Cannot rebuild policy version ${version.slice(0, 12)} because the checkpoint that the run ` +
      `started from is damaged: ${dir}: ${problemText(problem)}. Fix: restore it from a copy, or ` +
      "start a new run",
    { version, dir, ...problem },
  );
}

/** The start of a checkpoint directory's name. */
export function checkpointName({ number, version }: { number: number; version: string }): string {
  return `${String(number).padStart(6, "0")}-${version.slice(0, 12)}`;
}

/** Runs of steps that were taken with one number of ranks. */
function byWorldSize(steps: RedoStep[]): RedoStep[][] {
  const parts: RedoStep[][] = [];
  for (const step of steps) {
    const last = parts.at(-1);
    if (last?.[0]?.record.numerics.world_size === step.record.numerics.world_size) last.push(step);
    else parts.push([step]);
  }
  return parts;
}
