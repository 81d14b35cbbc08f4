/** Runs of the online flow whose engines die and whose worker groups are lost on purpose. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { WorkerLostError } from "../../../engine/mod.ts";
import {
  Crashed,
  type FakeCall,
  type FakeHook,
  FakeSampler,
  FakeTrainer,
  type MemoryStore,
} from "../../../testing/mod.ts";
import type { Ledger } from "../../../flows/mod.ts";
import { runView } from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { type Death, unsavedOf, watched } from "./deaths.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

/**
 * Where engines die (one life each) and where worker groups are lost (operations of the whole
 * history).
 */
type Trouble = { crashes: Death[]; losses: Partial<Record<Group, number[]>> };
type Model = "trainer" | "critic";
type Group = Model | "sampler";
export const NO_TROUBLE: Trouble = { crashes: [], losses: {} };
/** Problems of the evaluation, and with it the largest slab. */
export const SLAB_GROUPS_MAX = 2;

type Ended = {
  policy: unknown;
  critic: unknown;
  ledger: Ledger;
  evaluations: unknown;
  generated: number;
  started_again: string[];
  recoveries: { group?: string; batches_redone: number }[];
  /** Of each life that ended in a crash: versions that were recorded and in no checkpoint. */
  unsaved: Record<Model, number>[];
  /** Names of the rows that its last engine recorded: see `watched`. */
  moments: string[];
  operations: Record<Group, number>;
};

/**
 * Loses the group at its n-th operation, at the begin of an odd one and at the end of an even one.
 */
function losing(at: number[], state: { count: number }, forget: () => void): FakeHook {
  return (_: FakeCall, moment) => {
    if (moment === "begin") state.count++;
    if (!at.includes(state.count) || (moment === "begin") !== (state.count % 2 === 1)) return;
    forget();
    throw new WorkerLostError("Cannot continue because the worker was killed on purpose");
  };
}

/** A run of this configuration with its trouble, from its first engine to its last. */
export async function troubled(
  { crashes, losses }: Trouble,
  overrides: Record<string, unknown>,
): Promise<Ended> {
  const { store: first, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    evaluate: { problems: SLAB_GROUPS_MAX },
    ...overrides,
  });
  const counts = { trainer: { count: 0 }, critic: { count: 0 }, sampler: { count: 0 } };
  const started_again: string[] = [];
  const unsaved: Ended["unsaved"] = [];
  const moments = new Set<string>();
  let store: MemoryStore = first;
  const trainerOf = (group: Model) => {
    const trainer = new FakeTrainer({ artifacts });
    trainer.hook = losing(losses[group] ?? [], counts[group], () => trainer.forget());
    return trainer;
  };
  try {
    for (const death of [...crashes, watched(moments)]) {
      store = store.restarted(death);
      const sampler = new FakeSampler({ stop: (text) => text.length > 6 ? "length" : "stop" });
      const lose = losing(losses.sampler ?? [], counts.sampler, () => sampler.forget());
      sampler.hook = (call, moment) => {
        if (moment === "begin" && call.op === "generate" && recorded(store, call.key)) {
          started_again.push(call.key);
        }
        return lose(call, moment);
      };
      const workers = {
        trainer: trainerOf("trainer"),
        critic: trainerOf("critic"),
        samplers: [sampler],
      };
      const engine = { backoff: { first_ms: 0, max_ms: 0 } };
      try {
        const { outcome } = await execute(online, config, {
          store,
          artifacts,
          dir,
          ...workers,
          engine,
        });
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
        unsaved.push({ trainer: unsavedOf(store, "trainer"), critic: unsavedOf(store, "critic") });
      }
    }
    const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const { policy, critic, ledger, evaluations, recoveries, generated: { groups: generated } } =
      view;
    const operations = {
      trainer: counts.trainer.count,
      critic: counts.critic.count,
      sampler: counts.sampler.count,
    };
    const summary = { policy, critic, ledger, evaluations, generated, recoveries };
    return { ...summary, started_again, unsaved, moments: [...moments], operations };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function recorded(store: MemoryStore, key: string): boolean {
  return store.rows("run").some((row) => row.kind === "result" && row.key === key);
}

/** The same models, ledger and evaluations, and no completed stage was begun again. */
export function endsAs(calm: Ended, ended: Ended): void {
  const what = ({ policy, critic, ledger, evaluations }: Ended) => ({
    policy,
    critic,
    ledger,
    evaluations,
  });
  deepStrictEqual(what(ended), what(calm));
  deepStrictEqual(ended.started_again, []);
}
