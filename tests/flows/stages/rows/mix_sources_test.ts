import { deepStrictEqual, match, ok } from "node:assert/strict";
import { type RowTable, tableOf } from "../../../../data/mod.ts";
import { ArtifactStore, provide } from "../../../../engine/mod.ts";
import { mixSources, Rows, type ScoredGroup, steerMixture } from "../../../../flows/mod.ts";
import { ranAlone, valuesOf } from "../alone.ts";
import { scratch } from "../../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const rows = Array.from({ length: 5 }, (_, n) => ({ row_id: `${n}`, prompt: "p", columns: {} }));
const mixture = { sources: [{ name: "a", weight: 1 }, { name: "b", weight: 3 }] };
const data = { split: "train", rows: 5, digest: "d" };

async function mixed(train: RowTable, input: object = {}) {
  const stageInput = { data, round: 1, count: 40, seed: 3, mixture, drawn: [0, 0], ...input };
  const resources = [provide(Rows, { train })];
  return await ranAlone(mixSources, stageInput, { artifacts, resources });
}

Deno.test("mixSources() picks sources, counts their draws and records the round", async () => {
  const { outcome, store } = await mixed(tableOf(rows, "d", [2, 3]), { drawn: [5, 7] });
  ok(outcome.status === "done");
  const { picks, drawn } = outcome.output;
  const ofFirst = picks.sources.filter((source) => source === 0).length;
  deepStrictEqual([picks.drawn, drawn], [[5, 7], [5 + ofFirst, 7 + 40 - ofFirst]]);
  ok(ofFirst > 2 && ofFirst < 20);
  const [note] = Object.values(valuesOf(store.rows("run"), "note/mixture"));
  deepStrictEqual(note, {
    round: 1,
    sources: [
      { name: "a", rows: 2, drawn: drawn[0], repeated: drawn[0]! - 2, share: 0.25 },
      { name: "b", rows: 3, drawn: drawn[1], repeated: drawn[1]! - 3, share: 0.75 },
    ],
  });
});

Deno.test("mixSources() refuses a source that has no row left", async () => {
  const { outcome } = await mixed(tableOf(rows, "d", [0, 5]));
  ok(outcome.status === "failed");
  match(outcome.error.message, /mix the source 'a' because it has no row left/);
});

const group = (draw: number, rewards: number[], failed: string | null = null): ScoredGroup => ({
  id: `${draw}`,
  group: { draw, slab: { sha256: "0".repeat(64), bytes: 1 }, index: 0, samples: [0] },
  sampled_at: 0,
  sampled_by: "v",
  rewards,
  parts: {},
  lengths: [1],
  stops: ["stop"],
  failed,
  detail: null,
});

Deno.test("steerMixture() gives each reward of a round to the source of its draw", async () => {
  const curriculum = { toward: "signal", target: 0, width: 1, memory: 0.5, floor: 0.1 } as const;
  const input = {
    mixture: { ...mixture, curriculum },
    recent: [null, 1],
    picks: { sources: [1, 0, 1], drawn: [0, 3] },
    round: 2,
    scored: [group(3, [0, 0]), group(4, [1, 0]), group(5, [1], "reward_error")],
  };
  const { outcome } = await ranAlone(steerMixture, input, { artifacts, resources: [] });
  ok(outcome.status === "done");
  deepStrictEqual(outcome.output, [0.5, 0.5]);
});
