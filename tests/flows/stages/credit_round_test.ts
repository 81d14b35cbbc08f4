import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  decodeColumn,
  encodeColumn,
  encodeSlab,
  type Group,
  Sampling,
  type Trajectory,
} from "../../../data/mod.ts";
import { ArtifactStore } from "../../../engine/mod.ts";
import { creditRound, RoundTokens } from "../../../flows/stages/credit_round.ts";
import type { ScoredGroup } from "../../../flows/mod.ts";
import { scratch } from "../fixtures.ts";

const artifacts = new ArtifactStore(await scratch());

/** A trajectory of these mask bits; its tokens are their places. */
function trajectory(sample: number, mask: number[], options: Partial<Trajectory> = {}): Trajectory {
  return {
    sample,
    tokens: Int32Array.from(mask, (_, t) => t),
    action_mask: Uint8Array.from(mask),
    behaviour_logp: new Float32Array(mask.length),
    versions: [],
    stop: "stop",
    text: "",
    ...options,
  };
}

/** One group whose kept samples are these, out of order in their slab. */
async function scored(trajectories: Trajectory[], samples: number[]): Promise<ScoredGroup> {
  const group: Group = { draw: 0, row_id: "row", prompt_text: "", trajectories };
  const sampling = Sampling.parse({ temperature: 1, top_p: 1, top_k: -1, tokens_max: 8, stop: [] });
  const slab = await artifacts.put(
    encodeSlab({ slab: "s", version: "v", sampling, groups: [group] }),
  );
  const kept = samples.map((sample) => trajectories[sample]!);
  return {
    id: "draw-0",
    group: { draw: 0, slab, index: 0, samples },
    sampled_at: 0,
    sampled_by: "v",
    rewards: samples.map(() => 1),
    parts: {},
    lengths: kept.map(({ action_mask }) => action_mask.reduce((sum, bit) => sum + bit, 0)),
    stops: kept.map(({ stop }) => stop),
    ...(kept.some(({ token_rewards }) => token_rewards) && { token_rewards: true as const }),
    failed: null,
    detail: null,
  };
}

const column = (rows: number[][]) =>
  artifacts.put(encodeColumn(rows.map((row) => Float32Array.from(row))));

Deno.test("RoundTokens gives credit only sampled tokens, in sample order", async () => {
  const groups = [await scored([trajectory(0, [0, 1, 1]), trajectory(1, [0, 1, 0, 1])], [1, 0])];
  const tokens = new RoundTokens(groups, artifacts);
  const columns = {
    values: await column([[0, 1, 2, 3], [0, 4, 5]]),
    old_logp: await column([[9, 8, 7, 6], [5, 4, 3]]),
  };
  const decoded = await tokens.columns(columns, creditRound(groups));
  deepStrictEqual(decoded, { values: [[1, 3], [4, 5]], old_logp: [[8, 6], [4, 3]] });
  const back = await tokens.toColumn([[10, 30], [40, 50]]);
  strictEqual(back.kind, "token");
  const spread = decodeColumn(
    await artifacts.get((back as { artifact: { sha256: string; bytes: number } }).artifact),
  );
  deepStrictEqual(spread.map((row) => [...row]), [[0, 10, 0, 30], [0, 40, 50]]);
  deepStrictEqual(await tokens.toColumn([1, 2]), { kind: "sequence", values: [1, 2] });
});

Deno.test("RoundTokens counts V after the last token unless the text stopped", async () => {
  const stops = ["stop", "length", "max_turns", "timeout"] as const;
  const groups = [
    await scored(stops.map((stop, i) => trajectory(i, [0, 1], { stop })), [0, 1, 2, 3]),
  ];
  const bootstrap = await column([[1], [2], [3], [4]]);
  const decoded = await new RoundTokens(groups, artifacts).columns(
    { bootstrap },
    creditRound(groups),
  );
  deepStrictEqual(decoded, { bootstrap: [0, 2, 3, 4] });
});

Deno.test("RoundTokens moves an observation's reward to the token before it", async () => {
  const token_rewards = Float32Array.of(1, 2, 4, 8, 16);
  const groups = [
    await scored([trajectory(0, [0, 1, 0, 0, 1], { token_rewards }), trajectory(1, [0, 1])], [
      0,
      1,
    ]),
  ];
  deepStrictEqual(await new RoundTokens(groups, artifacts).rewards(), [[1 + 2 + 4 + 8, 16], [0]]);
  const without = [await scored([trajectory(0, [0, 1])], [0])];
  strictEqual(await new RoundTokens(without, artifacts).rewards(), undefined);
});

Deno.test("RoundTokens moves a reward to the tokens that earn it, and adds nothing", async () => {
  const trajectories = [
    trajectory(0, [0, 1, 1, 1]),
    trajectory(1, [0, 1, 0, 1]),
    trajectory(2, [0, 0]),
  ];
  const group = await scored(trajectories, [0, 1, 2]);
  const token_scores = await column([[0, 1, 2, 4], [0, 1, 2, 4], [0, 0]]);
  const tokens = new RoundTokens([{ ...group, token_scores }], artifacts);
  // Of 7, which the sequence's reward has: the last token has what others do not take.
  deepStrictEqual(await tokens.rewards(), [[1, 2, -3], [3, -3], []]);
  deepStrictEqual(await tokens.rewards({ functions: false }), undefined);
});

Deno.test("RoundTokens adds what functions give to what an environment gave", async () => {
  const token_rewards = Float32Array.from([0, 8, 16]);
  const group = await scored([trajectory(0, [0, 1, 1], { token_rewards })], [0]);
  const token_scores = await column([[0, 1, 2]]);
  const tokens = new RoundTokens([{ ...group, token_scores }], artifacts);
  deepStrictEqual(await tokens.rewards(), [[9, 15]]);
  deepStrictEqual(await tokens.rewards({ functions: false }), [[8, 16]]);
});
