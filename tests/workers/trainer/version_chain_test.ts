import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { type ArtifactRef, Numerics, Optimizer, PLAIN_NUMERICS } from "../../../data/mod.ts";
import { ArtifactStore, BadDataError, LostRecordError } from "../../../engine/mod.ts";
import {
  type CheckpointNote,
  ofGroup,
  type RecordedRow,
  recordedRows,
  VersionChain,
  type VersionNote,
} from "../../../workers/trainer/version_chain.ts";
import { withHome } from "../fixtures.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });
const numerics = Numerics.parse({
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

type Bench = { artifacts: ArtifactStore; rows: RecordedRow[]; ids: string[]; batch: ArtifactRef };

/** A recorded chain of a base and three trained versions; `ids` in their order. */
function withChain(body: (bench: Bench) => void | Promise<void>): Promise<void> {
  return withHome(async (home) => {
    const artifacts = new ArtifactStore(`${home}/artifacts`);
    const batch = await artifacts.putJson({ rows: [] });
    const base = { kind: "base" as const, model_digest: "d", optimizer, head: null, lora: null };
    const rows: RecordedRow[] = [];
    const ids: string[] = [];
    for (let number = 0; number <= 3; number++) {
      const trained = { kind: "trained" as const, parent: ids.at(-1)!, optimizer, numerics };
      const record = await artifacts.putJson(
        number === 0 ? base : { ...trained, batch, loss: batch },
      );
      const value: VersionNote = { record, model_path: "/m", number, steps: [] };
      rows.push({ kind: "note/version", key: record.sha256, value });
      ids.push(record.sha256);
    }
    await body({ artifacts, rows, ids, batch });
  });
}

const checkpoint = (version: string, dir = "/c/1"): CheckpointNote => ({
  version,
  dir,
  digest: "d",
  world_size: 1,
  files: [],
  number: 1,
  round: 1,
  metric: null,
});
const saved = (version: string, dir?: string): RecordedRow => ({
  kind: "note/checkpoint",
  key: version,
  value: checkpoint(version, dir),
});

Deno.test("VersionChain.routeTo() leads from the base over every batch", () =>
  withChain(async ({ artifacts, rows, ids }) => {
    const { start, redo } = await new VersionChain(artifacts, rows).routeTo(ids[3]!);
    deepStrictEqual([start.id, start.checkpoint], [ids[0], null]);
    deepStrictEqual(redo.map(({ id }) => id), ids.slice(1));
  }));

Deno.test("VersionChain.routeTo() starts at the newest checkpoint, not at a later one", () =>
  withChain(async ({ artifacts, rows, ids }) => {
    const chain = new VersionChain(artifacts, [...rows, saved(ids[1]!), saved(ids[3]!)]);
    const { start, redo } = await chain.routeTo(ids[2]!);
    deepStrictEqual([start.id, redo.map(({ id }) => id)], [ids[1], [ids[2]]]);
    deepStrictEqual((await chain.routeTo(ids[3]!)).redo, []);
  }));

Deno.test("VersionChain.drop() forgets a checkpoint, with a directory only that one", () =>
  withChain(({ artifacts, rows, ids }) => {
    const chain = new VersionChain(artifacts, [...rows, saved(ids[1]!, "/c/new")]);
    chain.drop(ids[1]!, "/c/old");
    strictEqual(chain.checkpoints().length, 1);
    chain.drop(ids[1]!);
    deepStrictEqual(chain.checkpoints(), []);
  }));

Deno.test("VersionChain reads dropped and set-aside checkpoints in their order", () =>
  withChain(({ artifacts, rows, ids }) => {
    const [one, two] = [ids[1]!, ids[2]!];
    const chain = new VersionChain(artifacts, [
      ...rows,
      saved(one),
      saved(two, "/c/2"),
      { kind: "note/checkpoint_dropped", key: one, value: {} },
      { kind: "note/checkpoint_set_aside", key: two, value: { dir: "/c/2" } },
      saved(one, "/c/again"),
    ]);
    deepStrictEqual(chain.checkpoints().map(({ dir }) => dir), ["/c/again"]);
  }));

Deno.test("VersionChain.stepsBetween() is null if the older version is no ancestor", () =>
  withChain(async ({ artifacts, rows, ids }) => {
    const chain = new VersionChain(artifacts, rows);
    const steps = await chain.stepsBetween(ids[1]!, ids[3]!);
    deepStrictEqual(steps!.map(({ id }) => id), [ids[2], ids[3]]);
    deepStrictEqual(await chain.stepsBetween(ids[2]!, ids[2]!), []);
    strictEqual(await chain.stepsBetween(ids[3]!, ids[1]!), null);
  }));

Deno.test("VersionChain.note() tells an unknown version from a damaged one", () =>
  withChain(({ artifacts, rows, ids }) => {
    const stored = rows.map((row) => ({
      kind: "note/version" as const,
      key: row.key,
      value: JSON.stringify(row.value),
    }));
    stored[2]!.value = "{torn";
    const chain = new VersionChain(artifacts, recordedRows(stored));
    deepStrictEqual(chain.note(ids[1]!), rows[1]!.value);
    throws(() => chain.note(ids[2]!), LostRecordError);
    throws(() => chain.note("0".repeat(64)), BadDataError);
  }));

Deno.test("recordedRows() throws for a damaged row that nothing can replace", () => {
  throws(
    () => recordedRows([{ kind: "note/replan", key: "k", value: "{torn" }]),
    LostRecordError,
  );
});

Deno.test("ofGroup() separates the chains, and keeps rows that concern all", () => {
  const row = (kind: string, group?: string) => ({ kind, key: "k", value: { group } });
  const rows = [
    row("note/version"),
    row("note/version", "critic"),
    row("note/checkpoint", "critic"),
    row("note/checkpoint_dropped"),
  ];
  deepStrictEqual(ofGroup(rows, undefined), [rows[0], rows[3]]);
  deepStrictEqual(ofGroup(rows, "critic"), [rows[1], rows[2], rows[3]]);
});

Deno.test("VersionChain.checkArtifacts() names the batch whose artifact is damaged", () =>
  withChain(async ({ artifacts, rows, ids, batch }) => {
    const chain = new VersionChain(artifacts, rows);
    const { redo: [step] } = await chain.routeTo(ids[1]!);
    await chain.checkArtifacts(step!);
    await Deno.truncate(artifacts.path(batch), 1);
    await rejects(
      chain.checkArtifacts(step!),
      /^LostRecordError: Cannot redo batch 1 of the chain because its loss is damaged: /,
    );
  }));
