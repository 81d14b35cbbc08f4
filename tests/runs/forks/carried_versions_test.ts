import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { Policy } from "../../../data/mod.ts";
import { ArtifactStore, type NewRow } from "../../../engine/mod.ts";
import { closedRound } from "../../../runs/forks/carried_versions.ts";
import { scratch } from "../../flows/fixtures.ts";

const artifacts = new ArtifactStore(await scratch());

const policy = (letter: string): Policy => ({
  version: letter.repeat(64),
  record: { sha256: letter.repeat(64), bytes: 1 },
  number: 3,
  model_path: "/model",
});
const closed = (key: string, carried: unknown): NewRow => ({
  kind: "round",
  key,
  value: JSON.stringify({ round: 3, carried, tally: {}, total: {} }),
});

Deno.test("closedRound() names each version once, and each model by its name", async () => {
  const carried = { policy: policy("a"), critic: policy("b"), reference: policy("a") };
  deepStrictEqual(await closedRound(artifacts, closed("round/3", carried)), {
    loop: "round",
    round: 3,
    versions: ["a".repeat(64), "b".repeat(64)],
    carried: { policy: "a".repeat(64), critic: "b".repeat(64), reference: "a".repeat(64) },
  });
});

Deno.test("closedRound() leaves out what a round hands on besides models", async () => {
  const { version, ...unnamed } = policy("a");
  const carried = { draws: [1, 2], unnamed, nothing: null, digest: version };
  deepStrictEqual(await closedRound(artifacts, closed("warmup/12", carried)), {
    loop: "warmup",
    round: 12,
    versions: [],
    carried: {},
  });
});

Deno.test("closedRound() reads a record that has moved to an artifact", async () => {
  const moved = await artifacts.putJson({
    round: 3,
    carried: { policy: policy("a") },
    tally: {},
    total: {},
  });
  const row = { kind: "round", key: "round/3", value: JSON.stringify({ $artifact: moved }) };
  deepStrictEqual(
    (await closedRound(artifacts, row as NewRow))?.carried,
    { policy: "a".repeat(64) },
  );
});

Deno.test("closedRound() is null for other rows, and for loops inside something else", async () => {
  const carried = { policy: policy("a") };
  for (const key of ["round/3/inner/2", "round", "round/last", "round/3/"]) {
    strictEqual(await closedRound(artifacts, closed(key, carried)), null, key);
  }
  const result = { ...closed("round/3", carried), kind: "result" as const };
  strictEqual(await closedRound(artifacts, result), null);
});
