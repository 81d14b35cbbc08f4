/**
 * Runs of every flow that older versions recorded with fake workers: deterministic on every
 * machine.
 */
import { deepStrictEqual } from "node:assert/strict";
import {
  Engine,
  type JournalRow,
  type RunHead,
  type Store,
  systemClock,
} from "../../engine/mod.ts";
import { fakeRun, FakeTrainer, MemoryStore } from "../../testing/mod.ts";
import {
  forkRun,
  Home,
  recordedDefinition,
  rowTables,
  runView,
  verifyVersions,
} from "../../runs/mod.ts";
import { rowsToRedo } from "../../runs/verify.ts";
import { PolicyTrainer } from "../../workers/mod.ts";
import { VERSIONS, withRecorded } from "./homes.ts";

type Place = { home: Home; store: Store; id: string };

/**
 * One engine's start at a run, with fresh workers that hold nothing. How the run stands after it.
 */
async function execute({ home, store, id }: Place) {
  const head = (await store.head(id))!;
  const { definition, config } = await recordedDefinition(store, head, { accept: true });
  const rows = await rowTables(JSON.parse(head.config), { home: home.dir });
  const { artifacts } = home;
  const restart = head.parent && head.epoch === 0 ? "fork" as const : "resume" as const;
  const { resources } = await fakeRun({
    store,
    artifacts,
    run: id,
    dir: `${home.dir}/fakes/${id}`,
    rows,
    restart,
  });
  await new Engine({ store, artifacts, resources }).execute(id, definition.build(config));
  return await endOf({ home, store, id });
}

/**
 * Whether a run is done, what it failed of, its last round, and whether all that it trained can be
 * redone from its record.
 */
async function endOf({ home, store, id }: Place) {
  const { status, error } = (await store.head(id))!;
  const { ledger } = await runView(store, (await store.head(id))!, { workers: [], metrics: {} });
  const [last] = await store.read(id, { kinds: ["round"], newest_first: true, limit: 1 });
  const redone = await isVerified({ home, store, id });
  return { status, error, round: last?.key ?? null, pending: ledger.pending, redone };
}

/**
 * Behind the last intent of each stage, newest first: an engine that is killed there has that stage
 * in flight.
 */
function cuts(rows: readonly JournalRow[]): number[] {
  const last = new Map<string, number>();
  for (const { kind, seq, value } of rows) {
    if (kind === "intent") last.set((JSON.parse(value) as { stage: string }).stage, seq);
  }
  return [...last.values()].sort((a, b) => b - a);
}

/**
 * A store in which the run's engine has died right after row `seq`. A fork's parent is there whole.
 */
async function cutStore(
  from: Store,
  { head, seq }: { head: RunHead; seq: number },
): Promise<MemoryStore> {
  const store = new MemoryStore();
  const add = async (
    { id, name, entry, graph, graph_hash, config, packages, parent }: RunHead,
    until = Infinity,
  ) => {
    const rows = (await from.read(id)).filter(({ seq }) => seq <= until);
    const first = rows.map(({ kind, key, input_hash, value }) => ({
      kind,
      key,
      input_hash,
      value,
    }));
    await store.create({ id, name, entry, graph, graph_hash, config, packages, parent }, first);
  };
  if (head.parent) await add((await from.head(head.parent.run))!);
  await add(head, seq);
  return store;
}

async function fakeIds(home: Home): Promise<string[]> {
  return (await home.store.heads()).map(({ id }) => id).filter((id) => id.startsWith("fake_"));
}

async function isVerified({ home, store, id }: Place): Promise<boolean> {
  const head = (await store.head(id))!;
  const rows = await rowsToRedo(store, head);
  const recorded = rows.map(({ kind, key, value }) => ({ kind, key, value: JSON.parse(value) }));
  const { artifacts } = home;
  const trainer = (group?: string) => {
    const operator = new FakeTrainer({ artifacts });
    const own = group === undefined
      ? {}
      : { group, block: "value_model" as const, head: "value" as const };
    const numerics = (tokens: number) => operator.numerics(tokens);
    const places = { artifacts, clock: systemClock, checkpoints_dir: `${home.dir}/verify` };
    return new PolicyTrainer({ operator, numerics, recorded, ...places, ...own });
  };
  const redone = { trainer: trainer(), critic: trainer("critic"), dir: `${home.dir}/verify` };
  return (await verifyVersions(store, head, { artifacts, ...redone })).equal;
}

for (const version of VERSIONS) {
  Deno.test(`recorded by ${version}: every flow, cut behind the start of any stage, resumes to the recorded end`, async () => {
    await withRecorded(version, async (dir) => {
      const home = Home.open(dir);
      for (const id of await fakeIds(home)) {
        const head = (await home.store.head(id))!;
        const rows = await home.store.read(id);
        const expected = await endOf({ home, store: home.store, id });
        deepStrictEqual([expected.status, expected.redone], ["done", true]);
        for (const seq of cuts(rows)) {
          const store = await cutStore(home.store, { head, seq });
          deepStrictEqual([id, seq, await execute({ home, store, id })], [id, seq, expected]);
        }
      }
      await home.close();
    });
  });

  Deno.test(`recorded by ${version}: every flow is forked at its first rounds, and ends as it did`, async () => {
    await withRecorded(version, async (dir) => {
      const home = Home.open(dir);
      const { store } = home;
      for (const id of await fakeIds(home)) {
        const expected = await endOf({ home, store, id });
        if (expected.round === null) continue; // It evaluates a model and trains none.
        for (const round of [0, 1]) {
          const child = await forkRun(home, (await store.head(id))!, {
            round,
            id: `${id}_from_${round}`,
          });
          const ended = await execute({ home, store, id: child.id });
          deepStrictEqual([child.id, ended], [child.id, expected]);
        }
      }
      await home.close();
    });
  });
}
