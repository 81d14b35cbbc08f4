import {
  encodeSlab,
  type Group,
  type Slab,
  type StopReason,
  type Trajectory,
} from "../data/mod.ts";
import { sha256Hex } from "../engine/mod.ts";
import { samplerRole } from "../workers/mod.ts";
import { checkFiles } from "./fake_failure.ts";
import { type FakeHook, FakeOperator } from "./fake_operator.ts";
import { fraction, probe, read } from "./fake_weights.ts";

/**
 * What a fake sampler says for one sample; a text of 1 to 8 digits unless the test says otherwise.
 */
export type Complete = (
  sample: { draw: number; sample: number; seed: number; weights: number },
) => string;

const digits: Complete = ({ draw, sample, seed, weights }) => {
  const hash = BigInt(`0x${sha256Hex(JSON.stringify([draw, sample, seed, weights])).slice(0, 15)}`);
  return String(hash).slice(0, 1 + Number(hash % 8n));
};

/**
 * A sampler without Python: it samples at exactly the loaded version, and what it says depends on
 * (weights, seed, draw, sample) only.
 */
export class FakeSampler extends FakeOperator {
  readonly #complete: Complete;
  readonly #stop: (text: string) => StopReason;

  /** `stop`: why its completions end, all of them or each by its text. */
  constructor(
    options: {
      complete?: Complete;
      hook?: FakeHook;
      stop?: StopReason | ((text: string) => StopReason);
    } = {},
  ) {
    super(options.hook ?? null);
    this.#complete = options.complete ?? digits;
    const { stop = "stop" } = options;
    this.#stop = typeof stop === "function" ? stop : () => stop;
  }

  protected async operate(
    op: string,
    { args, blobs }: { args: unknown; blobs: Uint8Array[] },
  ): Promise<unknown> {
    const { operations: sampler } = samplerRole;
    if (op === "load") {
      const { version, publication } = sampler.load.args.parse(args);
      await checkFiles(publication);
      const previous = this.held === null ? null : probe(this.held.weights);
      this.held = { version, weights: await read(publication.dir) };
      return {
        version,
        probe: probe(this.held.weights),
        previous_probe: previous,
        tensors_loaded: 1,
        seconds: 0,
      };
    }
    if (op === "probe") return probe(this.held?.weights ?? 0);
    if (op !== "generate") {
      throw new TypeError(`Cannot run '${op}' because the fake sampler has no such operation`);
    }
    const { version, slab, samples_per_prompt, sampling, seed } = sampler.generate.args.parse(args);
    const here = this.resident(version);
    if ("not_resident" in here) return here;
    const groups = slab.draws.map((draw) =>
      this.#group(draw, { ...here, samples_per_prompt, seed })
    );
    blobs.push(encodeSlab({ slab: slab.id, version, sampling, groups }));
    const all = groups.flatMap(({ trajectories }) => trajectories);
    const tokens = all.reduce(
      (sum, { action_mask }) => sum + action_mask.reduce((n, bit) => n + bit, 0),
      0,
    );
    return {
      version,
      groups: groups.length,
      samples: all.length,
      tokens,
      prompt_tokens: groups.length,
      seconds: 0,
    };
  }

  #group(
    { draw, row }: Slab["draws"][number],
    { version, weights, samples_per_prompt, seed }: {
      version: string;
      weights: number;
      samples_per_prompt: number;
      seed: number;
    },
  ): Group {
    const prompt_text = typeof row.prompt === "string" ? row.prompt : JSON.stringify(row.prompt);
    const trajectories = Array.from({ length: samples_per_prompt }, (_, sample): Trajectory => {
      const text = this.#complete({ draw, sample, seed, weights });
      // One prompt token, then one per character and the stop token.
      const tokens = Int32Array.from([1, ...[...text].map((letter) => letter.charCodeAt(0)), 0]);
      const action_mask = Uint8Array.from(tokens, (_, place) => (place === 0 ? 0 : 1));
      const behaviour_logp = Float32Array.from(
        tokens,
        (token, place) => (place === 0 ? 0 : -fraction(weights, token)),
      );
      const versions = [{ version, start: 1, end: tokens.length }];
      return {
        sample,
        tokens,
        action_mask,
        behaviour_logp,
        versions,
        stop: this.#stop(text),
        text,
      };
    });
    return { draw, row_id: row.row_id, prompt_text, trajectories };
  }
}
