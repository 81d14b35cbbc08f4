import type { z } from "zod";
import {
  type AlgorithmDescription,
  type ArtifactRef,
  Batch,
  decodeSlab,
  encodeColumn,
  Numerics,
  PLAIN_NUMERICS,
  type PreferencePair,
  PythonSource,
  type Row,
} from "../data/mod.ts";
import type { ArtifactStore } from "../engine/mod.ts";
import { Checkpoint, Publication, type StepRecord, trainerRole } from "../workers/mod.ts";
import { checkFiles, checkModel } from "./fake_failure.ts";
import { type FakeHook, FakeOperator } from "./fake_operator.ts";
import { digestOf, fraction, read, writeFakeModel } from "./fake_weights.ts";

const FAKE_NUMERICS = Numerics.parse({
  engine: "fake",
  zero: 0,
  world_size: 1,
  dtype: "float64",
  threads: 1,
  device: "fake",
  packages: {},
  micro_batch_tokens_max: 1,
  offload: { optimizer: false, parameters: false },
  attn_implementation: null,
  trust_remote_code: false,
  open_with_missing: false,
  ...PLAIN_NUMERICS,
});

/**
 * A trainer without Python: its model is one number, and every step depends on all bits of the
 * batch, the loss, the optimizer and the number before it. It answers all operations of a trainer
 * as the real one does, not_resident included.
 */
export class FakeTrainer extends FakeOperator {
  /** Part of what the weights come out as: in its last bits, as rounding would be. */
  readonly ranks: number;
  readonly #artifacts: ArtifactStore;
  readonly #description: AlgorithmDescription;
  readonly #tokensMax: number | null;
  readonly #refuses: string | null;
  #last: { version: string; steps: StepRecord[] } | null = null;

  /**
   * `describes`: what it finds in every algorithm's file. `tokens_max`: positions of its model;
   * null: any number. `refuses`: a row that its template cannot write.
   */
  constructor(
    options: {
      artifacts: ArtifactStore;
      hook?: FakeHook;
      ranks?: number;
      describes?: Partial<AlgorithmDescription>;
      tokens_max?: number | null;
      refuses?: string;
    },
  ) {
    super(options.hook ?? null);
    this.#artifacts = options.artifacts;
    this.ranks = options.ranks ?? 1;
    this.#tokensMax = options.tokens_max ?? null;
    this.#refuses = options.refuses ?? null;
    this.#description = { ...FAKE_DESCRIPTION, ...options.describes };
  }

  /** For `PolicyTrainer`: the numerics that this trainer works with. */
  numerics(micro_batch_tokens_max: number): Promise<Numerics> {
    return Promise.resolve({ ...FAKE_NUMERICS, world_size: this.ranks, micro_batch_tokens_max });
  }

  protected async operate(
    op: string,
    { args, blobs }: { args: unknown; blobs: Uint8Array[] },
  ): Promise<unknown> {
    const { operations: trainer } = trainerRole;
    switch (op) {
      case "create_model": {
        const { recipe, seed, dir } = trainer.create_model.args.parse(args);
        const model = await writeFakeModel(dir, fraction(recipe, seed));
        return { dir, digest: model.digest };
      }
      case "inspect_model": {
        const { dir } = trainer.inspect_model.args.parse(args);
        return { digest: digestOf(await read(dir)), parameters: 1, architecture: "fake" };
      }
      case "measure_rows":
        return await this.#measure(trainer.measure_rows.args.parse(args), blobs);
      case "open_algorithm": {
        const { settings } = await this.#algorithm(
          trainer.open_algorithm.args.parse(args).algorithm,
        );
        return { ...this.#description, settings };
      }
      case "credit":
        return await this.#credit(trainer.credit.args.parse(args), blobs);
      case "load":
        return await this.#load(trainer.load.args.parse(args));
      case "train":
        return await this.#train(trainer.train.args.parse(args));
      case "score":
        return await this.#score(trainer.score.args.parse(args), blobs);
      case "evaluate":
        return await this.#evaluate(trainer.evaluate.args.parse(args));
      case "publish":
        return await this.#write(op, trainer.publish.args.parse(args));
      case "save":
        return await this.#write(op, trainer.save.args.parse(args));
    }
    throw new TypeError(`Cannot run '${op}' because the fake trainer has no such operation`);
  }

  /** A token of the fake model's tokenizer is a character. */
  async #measure({ rows: ref }: { rows: ArtifactRef }, blobs: Uint8Array[]): Promise<unknown> {
    const rows = await this.#artifacts.getJson(ref) as Pick<
      Row,
      "row_id" | "prompt" | "completion" | "rejected"
    >[];
    const row = rows.findIndex(({ row_id }) => row_id === this.#refuses);
    if (row >= 0) {
      blobs.push(new Uint8Array());
      const refused = { row, why: "message 2 tool_calls: nothing is written of it" };
      return { rows: 0, model_tokens_max: this.#tokensMax, refused };
    }
    const length = (text: Row["prompt"] = "") =>
      (typeof text === "string" ? text : JSON.stringify(text)).length;
    const lengths = rows.flatMap(({ prompt, completion, rejected }) => [
      length(prompt),
      length(prompt) + Math.max(length(completion), length(rejected)),
    ]);
    blobs.push(new Uint8Array(Int32Array.from(lengths).buffer));
    return { rows: rows.length, model_tokens_max: this.#tokensMax };
  }

  async #algorithm(ref: ArtifactRef): Promise<PythonSource> {
    return PythonSource.parse(await this.#artifacts.getJson(ref));
  }

  /**
   * Whatever the file says: reward minus the round's mean; a value model learns what it says
   * already.
   */
  async #credit({ algorithm, round }: FakeCredit, blobs: Uint8Array[]): Promise<unknown> {
    await this.#algorithm(algorithm);
    const { reward, values } = await this.#artifacts.getJson(round) as {
      reward: number[];
      values?: number[][];
    };
    const mean = reward.reduce((sum, value) => sum + value, 0) / reward.length;
    const advantage = reward.map((value) => value - mean);
    blobs.push(
      new TextEncoder().encode(JSON.stringify({ advantage, returns: values })),
    );
    return { sequences: reward.length };
  }

  async #load({ version, model_path, checkpoint, model_digest }: FakeLoad): Promise<unknown> {
    this.held = null;
    if (checkpoint) await checkFiles(checkpoint);
    else await checkModel(model_path, model_digest);
    this.held = { version, weights: await read(checkpoint?.dir ?? model_path) };
    return { version, numerics: await this.numerics(1) };
  }

  async #train(
    { from, to, batch, loss, optimizer, micro_batch_tokens_max }: FakeTrain,
  ): Promise<unknown> {
    if (this.version === to && this.#last?.version === to) return this.#last;
    const before = this.resident(from);
    if ("not_resident" in before) return before;
    const { updates } = Batch.parse(await this.#artifacts.getJson(batch));
    let { weights } = before;
    const steps = updates.map((groups, update): StepRecord => {
      const rounding = 1e-12 * fraction(this.ranks, micro_batch_tokens_max);
      const gradient = Math.sin(3 * weights + fraction(batch.sha256, loss.sha256, update)) +
        rounding;
      const { lr } = optimizer;
      weights -= lr * gradient;
      const counts = { n_tokens: groups.length, n_sequences: groups.length, micro_batches: 1 };
      return { loss: gradient ** 2 / 2, grad_norm: Math.abs(gradient), lr, ...counts, metrics: {} };
    });
    this.held = { version: to, weights };
    this.#last = { version: to, steps };
    return this.#last;
  }

  async #score(
    { version, batch, columns, reference_path, reference_digest }: FakeScore,
    blobs: Uint8Array[],
  ): Promise<unknown> {
    const here = this.resident(version);
    if ("not_resident" in here) return here;
    if (reference_path !== null && columns.includes("ref_logp")) {
      await checkModel(reference_path, reference_digest);
    }
    const parsed = Batch.parse(await this.#artifacts.getJson(batch));
    const rows = parsed.kind === "preference"
      ? parsed.pairs.flatMap(fakeSides)
      : parsed.kind === "unpaired"
      ? fakeCompletions(parsed)
      : await this.#trajectoryTokens(parsed);
    for (const column of columns) {
      const weights = column === "ref_logp" ? await read(reference_path!) : here.weights;
      blobs.push(encodeColumn(rows.map((row) => fakeColumn(column, row, weights))));
    }
    return { columns };
  }

  async #trajectoryTokens(read: Batch): Promise<Int32Array[]> {
    const groups = read.kind === "trajectories" ? read.groups : [];
    const tokens = await Promise.all(groups.map(async ({ slab, index, samples }) => {
      const { trajectories } = decodeSlab(await this.#artifacts.get(slab)).groups[index]!;
      return samples.map((sample) => trajectories[sample]!.tokens);
    }));
    return tokens.flat();
  }

  /** Numbers that depend on all bits of the weights, the batch and the loss. */
  async #evaluate({ version, batch, loss }: FakeEvaluate): Promise<unknown> {
    const here = this.resident(version);
    if ("not_resident" in here) return here;
    const parsed = Batch.parse(await this.#artifacts.getJson(batch));
    const sequences = parsed.kind === "preference"
      ? 2 * parsed.pairs.length
      : parsed.kind === "unpaired"
      ? fakeCompletions(parsed).length
      : 0;
    const value = fraction(here.weights, batch.sha256, loss.sha256);
    const counts = { n_tokens: sequences, n_sequences: sequences, micro_batches: 1 };
    return {
      loss: value,
      ...counts,
      metrics: { "reward/accuracy": value, "reward/margin": value },
    };
  }

  async #write(
    op: "publish" | "save",
    { version, dir }: { version: string; dir: string },
  ): Promise<unknown> {
    const here = this.resident(version);
    if ("not_resident" in here) return here;
    const { digest, file } = await writeFakeModel(dir, here.weights);
    if (op === "save") {
      // As a real checkpoint: its state, and a model directory.
      const hf = (await writeFakeModel(`${dir}/hf`, here.weights)).file;
      const files = [file, { ...hf, path: `hf/${hf.path}` }];
      return Checkpoint.parse({ version, dir, digest, world_size: this.ranks, files });
    }
    const tensors = [{ name: "weights", dtype: "F64", shape: [], sha256: file.sha256 }];
    return Publication.parse({ version, dir, digest, tensors, files: [file] });
  }
}

/** V is the same before every token, and another after the last. */
function fakeColumn(
  column: FakeScore["columns"][number],
  tokens: Int32Array,
  weights: number,
): Float32Array {
  switch (column) {
    case "old_logp":
    case "ref_logp":
      return Float32Array.from(tokens, (token) => -fraction(weights, token));
    case "values":
      return Float32Array.from(tokens, () => fraction(weights, "values"));
    case "bootstrap":
    case "score":
      return Float32Array.of(fraction(weights, column, ...tokens));
  }
}

/** The two sides of a pair: one token per character of prompt and completion. */
function fakeSides({ prompt, chosen, rejected }: PreferencePair): Int32Array[] {
  return [chosen, rejected].map((side) => fakeTokens(prompt, side));
}

/** Each completion, and the mismatched one behind its prompt, if there are any. */
function fakeCompletions({ completions, mismatched }: UnpairedBatch): Int32Array[] {
  return completions.flatMap(({ prompt, completion }, i) => [
    fakeTokens(prompt, completion),
    ...(mismatched ? [fakeTokens(prompt, completions[mismatched[i]!]!.completion)] : []),
  ]);
}

function fakeTokens(prompt: unknown, completion: unknown): Int32Array {
  const text = (part: unknown) => typeof part === "string" ? part : JSON.stringify(part);
  return Int32Array.from(text(prompt) + text(completion), (letter) => letter.codePointAt(0)!);
}

/** What a fake trainer finds in an algorithm's file where a test says nothing else. */
const FAKE_DESCRIPTION: AlgorithmDescription = {
  settings: {},
  inputs: ["advantage", "logp", "n_tokens"],
  metrics: [],
  needs: [],
  value_inputs: null,
  group_min: 2,
  coef: {},
  pairs: false,
  mismatched: false,
  live_statistics: false,
};

type UnpairedBatch = Extract<Batch, { kind: "unpaired" }>;
type FakeCredit = z.infer<typeof trainerRole.operations.credit.args>;
type FakeLoad = z.infer<typeof trainerRole.operations.load.args>;
type FakeTrain = z.infer<typeof trainerRole.operations.train.args>;
type FakeEvaluate = z.infer<typeof trainerRole.operations.evaluate.args>;
type FakeScore = z.infer<typeof trainerRole.operations.score.args>;
