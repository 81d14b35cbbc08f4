import { strictEqual } from "node:assert/strict";
import { z } from "zod";
import { Optimizer, type Policy } from "../../../data/mod.ts";
import {
  type ArtifactStore,
  Engine,
  graph,
  type JournalRow,
  type Outcome,
  type Provided,
  type Stage,
} from "../../../engine/mod.ts";
import { preparePolicy } from "../../../flows/mod.ts";
import { type FakeRun, fakeRun, type FakeRunOptions, MemoryStore } from "../../../testing/mod.ts";
import { stores } from "../fixtures.ts";

/** How a run of one stage ends. */
export async function ranAlone<I, O>(
  stage: Stage<I, O>,
  input: NoInfer<I>,
  { artifacts, resources }: { artifacts: ArtifactStore; resources: Provided[] },
): Promise<{ outcome: Outcome<O>; store: MemoryStore }> {
  const store = new MemoryStore();
  const alone = graph("alone", z.strictObject({}), (g) => g.stage(stage, input as never));
  const engine = new Engine({ store, artifacts, resources });
  await engine.create(alone, {}, { id: "run" });
  return { outcome: await engine.execute("run", alone.build({})) as Outcome<O>, store };
}

type Ended<O> = { outcome: Outcome<O>; rows: readonly JournalRow[] };

/** A home in memory with fake workers that outlive the stages which run there, each alone. */
export type FakeBench = FakeRun & {
  artifacts: ArtifactStore;
  dir: string;
  model: string;
  /** How a stage ends, and what it recorded. */
  ran<I, O>(stage: Stage<I, O>, input: NoInfer<I>): Promise<Ended<O>>;
  /** What a stage returns. */
  done<I, O>(stage: Stage<I, O>, input: NoInfer<I>): Promise<O>;
  /** Whether a resume finds the files that a stage left; otherwise it makes them again. */
  finds<I, O>(stage: Stage<I, O>, output: NoInfer<O>): Promise<boolean>;
  /** A first version; each learning rate has a different one. */
  start(lr?: number): Promise<Policy>;
};

/** `parts`: what differs from plain fake workers. */
export async function fakeBench(
  parts: (artifacts: ArtifactStore) => Partial<FakeRunOptions> = () => ({}),
): Promise<FakeBench> {
  const { store, artifacts, dir, model } = await stores();
  const options = { store, run: "run", artifacts, dir, rows: {}, ...parts(artifacts) };
  const fake = await fakeRun(options);
  const places = { artifacts, resources: fake.resources };
  async function ran<I, O>(stage: Stage<I, O>, input: NoInfer<I>): Promise<Ended<O>> {
    const { outcome, store } = await ranAlone(stage, input, places);
    return { outcome, rows: store.rows("run") };
  }
  async function done<I, O>(stage: Stage<I, O>, input: NoInfer<I>): Promise<O> {
    const { outcome } = await ran(stage, input);
    strictEqual(outcome.status, "done", JSON.stringify(outcome));
    return (outcome as Extract<typeof outcome, { status: "done" }>).output;
  }
  const finds = async <I, O>({ leaves }: Stage<I, O>, output: NoInfer<O>): Promise<boolean> =>
    await leaves!.areThere(output, {
      resource: ({ name }) => fake.resources.find((one) => one.name === name)!.value as never,
    });
  const start = (lr = 0.1) =>
    done(preparePolicy, { model_path: model, optimizer: Optimizer.parse({ lr }) });
  return { ...fake, artifacts, dir, model, ran, done, finds, start };
}

/** The values of a kind of rows, by key. */
export function valuesOf(rows: readonly JournalRow[], kind: string): Record<string, unknown> {
  const found = rows.filter((row) => row.kind === kind);
  return Object.fromEntries(found.map(({ key, value }) => [key, JSON.parse(value)]));
}
