import { deepStrictEqual, throws } from "node:assert/strict";
import { decode, encode } from "@msgpack/msgpack";
import fc from "fast-check";
import {
  decodeColumn,
  decodeSlab,
  encodeColumn,
  encodeSlab,
  type GeneratedSlab,
  Sampling,
  type Trajectory,
} from "../../data/mod.ts";

const floats = (length: number) =>
  fc.float32Array({ minLength: length, maxLength: length, noNaN: true });

const trajectory: fc.Arbitrary<Trajectory> = fc.nat(12).chain((length) =>
  fc.record({
    sample: fc.nat(),
    tokens: fc.int32Array({ minLength: length, maxLength: length }),
    action_mask: fc.uint8Array({ minLength: length, maxLength: length, max: 1 }),
    behaviour_logp: floats(length),
    versions: fc.array(fc.record({ version: fc.string(), start: fc.nat(), end: fc.nat() }), {
      maxLength: 2,
    }),
    stop: fc.constantFrom("stop" as const, "length" as const),
    text: fc.string({ unit: "grapheme" }),
    token_rewards: floats(length),
  }, {
    requiredKeys: ["sample", "tokens", "action_mask", "behaviour_logp", "versions", "stop", "text"],
  })
);

const slab: fc.Arbitrary<GeneratedSlab> = fc.record({
  slab: fc.string(),
  version: fc.string(),
  sampling: fc.constant(
    Sampling.parse({ temperature: 0.7, top_p: 1, top_k: -1, tokens_max: 8, stop: ["\n"] }),
  ),
  groups: fc.array(
    fc.record({
      draw: fc.nat(),
      row_id: fc.string(),
      prompt_text: fc.string(),
      trajectories: fc.array(trajectory, { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
});

const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, v) => Object.is(v, -0) ? "-0" : v));

Deno.test("decodeSlab() gives back what encodeSlab() wrote, bit for bit and type for type", () => {
  fc.assert(
    fc.property(slab, (value) => {
      const back = decodeSlab(encodeSlab(value));
      deepStrictEqual(plain(back), plain(value));
      for (const t of back.groups.flatMap((group) => group.trajectories)) {
        deepStrictEqual([t.tokens.constructor, t.behaviour_logp.constructor], [
          Int32Array,
          Float32Array,
        ]);
      }
    }),
    { numRuns: 80 },
  );
});

Deno.test("decodeColumn() gives back what encodeColumn() wrote", () => {
  const column = [new Float32Array([1.5, -2]), new Float32Array([]), new Float32Array([3])];
  deepStrictEqual(decodeColumn(encodeColumn(column)), column);
});

const good: GeneratedSlab = {
  slab: "0-0",
  version: "v",
  sampling: Sampling.parse({ temperature: 1, top_p: 1, top_k: -1, tokens_max: 8, stop: [] }),
  groups: [{
    draw: 3,
    row_id: "r",
    prompt_text: "p",
    trajectories: [{
      sample: 1,
      tokens: new Int32Array([5, 6]),
      action_mask: new Uint8Array([0, 1]),
      behaviour_logp: new Float32Array([0, -1]),
      versions: [],
      stop: "stop",
      text: "t",
    }],
  }],
};

Deno.test("decodeSlab() names what is wrong with bytes that are no slab", () => {
  throws(() => decodeSlab(new Uint8Array([0xc1])), /Cannot read it as MessagePack/);
  throws(
    () => decodeSlab(encode({ ...good, groups: 3 })),
    /Cannot read slab because groups is wrong/,
  );
  const packed = decode(encodeSlab(good)) as {
    groups: { trajectories: Record<string, unknown>[] }[];
  };
  packed.groups[0]!.trajectories[0]!.behaviour_logp = new Uint8Array(4);
  throws(() => decodeSlab(encode(packed)), /draw 3 sample 1 has 2 tokens but 1 of behaviour_logp/);
  packed.groups[0]!.trajectories[0]!.tokens = new Uint8Array(7);
  throws(() => decodeSlab(encode(packed)), /draw 3 sample 1 tokens: 7 bytes are not whole numbers/);
});

Deno.test("decodeSlab() reads a packed null of token_rewards as none", () => {
  const packed = decode(encodeSlab(good)) as {
    groups: { trajectories: Record<string, unknown>[] }[];
  };
  packed.groups[0]!.trajectories[0]!.token_rewards = null;
  deepStrictEqual(decodeSlab(encode(packed)), good);
});
