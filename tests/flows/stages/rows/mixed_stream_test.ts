import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import { tableOf } from "../../../../data/mod.ts";
import {
  ArtifactStore,
  defineStage,
  provide,
  type RecordingContext,
} from "../../../../engine/mod.ts";
import { mixSources, Rows } from "../../../../flows/mod.ts";
import { MixedStream } from "../../../../flows/stages/rows/mixed_stream.ts";
import { ranAlone } from "../alone.ts";
import { scratch } from "../../fixtures.ts";

const rows = Array.from({ length: 5 }, (_, n) => ({ row_id: `${n}`, prompt: "p", columns: {} }));
const places = {
  artifacts: new ArtifactStore(`${await scratch()}/artifacts`),
  resources: [provide(Rows, { train: tableOf(rows, "d", [2, 3]) })],
};
const from = {
  data: { split: "train", rows: 5, digest: "d" },
  round: 1,
  seed: 3,
  mixture: { sources: [{ name: "a", weight: 1 }, { name: "b", weight: 3 }] },
  drawn: [0, 0],
};

Deno.test("MixedStream picks in two batches what a round of both picks at once", async () => {
  const twice = defineStage({
    name: "twice",
    version: 1,
    input: z.strictObject({}),
    output: z.unknown(),
    run: async (_, ctx: RecordingContext) => {
      const stream = await MixedStream.open(from, ctx);
      const [a, b] = [0, 4].map((first) => stream.next({ from: first, count: 4 }));
      const sources = [...a!.sources, ...b!.sources];
      return { picks: { sources, drawn: a!.drawn }, ...stream.end([], ctx) };
    },
  });
  const { outcome } = await ranAlone(twice, {}, places);
  const { outcome: once } = await ranAlone(mixSources, { ...from, count: 8 }, places);
  ok(outcome.status === "done" && once.status === "done");
  deepStrictEqual(outcome.output, once.output);
});
