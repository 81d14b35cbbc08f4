import { type Sampling, type Slab } from "../data/mod.ts";
import { InfrastructureError, isNothing } from "../engine/mod.ts";
import {
  ask,
  askResident,
  type Caller,
  firstProblem,
  type Loss,
  mayBeDamage,
  type Operator,
  problemText,
  type Published,
  rebuild,
  type RestartCause,
  RoleWorkers,
  samplerRole,
  type Turns,
} from "../workers/mod.ts";

export type Republish = (published: Published, caller: Caller) => Promise<unknown>;
/** A generated slab as bytes, its counts, and its duration. */
export type Generated = {
  version: string;
  groups: number;
  samples: number;
  tokens: number;
  seconds: number;
  slab: Uint8Array;
};

/**
 * The samplers as stages see them. Any of them takes the next slab; one that lacks the wanted
 * version loads its publication first. A slab's content never depends on which sampler generated
 * it.
 */
export class PolicySampler {
  readonly #workers: RoleWorkers<typeof samplerRole>;
  readonly #restart: RestartCause;
  /** The samplers that have received a publication from this engine. */
  readonly #loaded = new Set<Operator>();
  readonly #republish: Republish | null;
  /** Settles with the most recently rewritten publication. */
  #writing: Promise<void> = Promise.resolve();

  /**
   * `restart`: how the previous engine ended, if there was one. `republish`: rewrites a publication
   * whose files were dropped meanwhile; without it they must still exist. `turns`: of everybody who
   * calls the operators; absent: nobody else does.
   */
  constructor(
    options: {
      operators: Operator[];
      restart?: RestartCause;
      republish?: Republish;
      turns?: Turns;
    },
  ) {
    this.#restart = options.restart ?? "engine_lost";
    this.#republish = options.republish ?? null;
    this.#workers = new RoleWorkers(samplerRole, options.operators, options.turns);
  }

  /** How many workers sample. */
  get count(): number {
    return this.#workers.count;
  }

  /** Puts a publication on every sampler; each proves that the weights reached its kernels. */
  async load(
    { policy, publication }: Published,
    caller: Caller,
  ): Promise<{ probe_sha256: string; seconds: number }[]> {
    return await this.#workers.eachInTurn(caller, async (operator) => {
      const loaded = await this.#load(operator, { policy, publication }, caller);
      const loss = operator.takeLoss?.() ?? null;
      if (loss) await recordLoaded(caller, { ...loss, version: policy.version });
      return { probe_sha256: loaded.probe.sha256, seconds: loaded.seconds };
    });
  }

  /**
   * Generates one slab at exactly the published version. The bytes are MessagePack of a
   * GeneratedSlab. `onNew` is awaited before new work. Work that a sampler started for an earlier
   * engine continues on that sampler instead.
   */
  async generate(
    input: {
      published: Published;
      slab: Slab;
      samples_per_prompt: number;
      sampling: Sampling;
      seed: number;
    },
    caller: Caller,
    { onNew }: { onNew?: () => Promise<void> } = {},
  ): Promise<Generated> {
    const { published, slab, ...rest } = input;
    const args = {
      version: published.policy.version,
      slab: promptsOf(slab),
      ...rest,
    };
    const holder = await this.#workers.holder("generate", args, caller);
    if (!holder) await onNew?.();
    const generateOn = async (operator: Operator) => {
      const bring = async (held: string | null) => {
        const cause = this.#loaded.has(operator) ? "worker_lost" : this.#restart;
        const { seconds } = await this.#load(operator, published, caller);
        const loss = operator.takeLoss?.() ?? (held === null ? { cause, seconds } : null);
        if (loss) await recordLoaded(caller, { ...loss, version: args.version });
      };
      const generate = () => ask(operator, [samplerRole, "generate"], args, caller);
      const { answers: [output], blobs: [slab] } = await askResident(generate, { bring });
      if (!slab) {
        throw new InfrastructureError(
          "Cannot take a slab because the sampler sent no data with its result",
          {
            ...output,
          },
        );
      }
      return { ...output, slab };
    };
    return await this.#workers.turn(caller, generateOn, holder);
  }

  async #load(operator: Operator, published: Published, caller: Caller) {
    const { dir } = published.publication;
    if (!isThere(dir)) await this.#writeAgain(published, caller, () => isThere(dir));
    const load = () => rebuild(operator, [samplerRole, published], caller);
    const loaded = await load().catch(async (error) => {
      if (!mayBeDamage(error) || this.#republish === null) throw error;
      await this.#rewrite(published, caller);
      // The files may be intact by now, thanks to a different sampler's load or a different stage.
      return await load();
    });
    this.#loaded.add(operator);
    return loaded;
  }

  /** Has a publication rewritten whose files are damaged. */
  async #rewrite({ policy, publication }: Published, caller: Caller): Promise<void> {
    const { dir, files } = publication;
    const problem = await firstProblem(dir, files);
    if (problem === null) return;
    caller.emit?.({ log: `publication ${dir}: ${problemText(problem)}. It is written again` });
    await this.#writeAgain(
      { policy, publication },
      caller,
      async () => await firstProblem(dir, files) === null,
    );
    const again = await firstProblem(dir, files);
    if (again !== null) {
      throw new InfrastructureError(
        `Cannot rewrite publication ${dir} because the new files differ: ${problemText(again)}`,
        { ...again, version: policy.version },
        { retryable: false },
      );
    }
    const nothing = { version: policy.version, batches_redone: 0, seconds: 0 };
    await caller.record("recovery", caller.key, {
      cause: "damaged_publication",
      action: "republish",
      ...nothing,
    });
  }

  /**
   * One at a time, and only if it is still damaged: a sampler may be reading what the previous turn
   * has written.
   */
  async #writeAgain(
    published: Published,
    caller: Caller,
    isWhole: () => boolean | Promise<boolean>,
  ): Promise<void> {
    const republish = this.#republish;
    if (republish === null) return;
    const turn = this.#writing.then(async () => {
      if (await isWhole()) return;
      await republish(published, caller);
    });
    this.#writing = turn.catch(() => {}); // Its caller handles it; the next one still starts.
    await turn;
  }
}

/** A slab with only the columns that a sampler reads; others may be many times as long. */
function promptsOf({ id, draws }: Slab): Slab {
  return {
    id,
    draws: draws.map(({ row: { row_id, prompt, tools }, ...draw }) => ({
      ...draw,
      row: { row_id, prompt, tools, columns: {} },
    })),
  };
}

function isThere(dir: string): boolean {
  try {
    return Deno.statSync(dir).isDirectory;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}

async function recordLoaded(caller: Caller, loss: Loss & { version: string }): Promise<void> {
  await caller.record("recovery", caller.key, {
    ...loss,
    action: "load_publication",
    batches_redone: 0,
  });
}
