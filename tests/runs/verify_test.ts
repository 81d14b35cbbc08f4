import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import type { Policy } from "../../data/mod.ts";
import type { Store } from "../../engine/mod.ts";
import { fakeRun, FakeTrainer } from "../../testing/mod.ts";
import { online } from "../../flows/online.ts";
import {
  rowsToRedo,
  type Verified,
  type VerifiedVersion,
  verifyVersions,
} from "../../runs/verify.ts";
import { PolicyTrainer, type VersionNote } from "../../workers/mod.ts";
import { execute, onlineConfig, rowsOf, stores } from "../flows/fixtures.ts";

const ROUNDS = 5;

/** A run that is done, and how to verify it on workers that have never seen it. */
async function done(overrides: (model: string) => Parameters<typeof onlineConfig>[1] = () => ({})) {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, { rounds: ROUNDS, ...overrides(model) });
  const { outcome } = await execute(online, config, { store, artifacts, dir });
  strictEqual(outcome.status, "done");
  const head = (await store.head("run"))!;
  const ranks = new FakeTrainer({ artifacts });
  const verify = async (
    { over = store as Store, ...options }: { over?: Store; from?: number; spoilt?: string } = {},
  ): Promise<Verified & { reported: VerifiedVersion[] }> => {
    const recorded = (await rowsToRedo(over, head)).map(({ kind, key, value }) => ({
      kind,
      key,
      value: JSON.parse(value),
    }));
    const trainer = new PolicyTrainer({
      operator: ranks,
      artifacts,
      clock: { now: () => 0, monotonic: () => 0 } as never,
      numerics: (tokens) => ranks.numerics(tokens),
      recorded,
      checkpoints_dir: `${dir}/verify/checkpoints`,
    });
    const reported: VerifiedVersion[] = [];
    const onVersion = (version: VerifiedVersion) => void reported.push(version);
    const verified = await verifyVersions(over, head, {
      artifacts,
      trainer,
      dir: `${dir}/verify`,
      onVersion,
      ...options,
    });
    return { ...verified, reported };
  };
  return { store, artifacts, dir, ranks, verify, head };
}

/** The store, with one recorded value changed as it is read. */
function changed(store: Store, kind: string, change: (value: never, n: number) => unknown): Store {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== "read") return typeof member === "function" ? member.bind(target) : member;
      return async (...args: Parameters<Store["read"]>) => {
        let n = 0;
        return (await target.read(...args)).map((row) =>
          row.kind === kind
            ? { ...row, value: JSON.stringify(change(JSON.parse(row.value) as never, n++)) }
            : row
        );
      };
    },
  });
}

Deno.test("verify redoes every version once and finds what was recorded", async () => {
  const { ranks, verify } = await done();
  const { equal, versions, reported } = await verify();
  ok(equal);
  deepStrictEqual(versions, reported);
  deepStrictEqual(versions.map(({ number }) => number), [0, 1, 2, 3, 4, 5]);
  deepStrictEqual(versions.map(({ round }) => round), [
    null,
    "round/1",
    "round/2",
    "round/3",
    "round/4",
    "round/5",
  ]);
  ok(versions.every(({ steps, digest }) => steps === "equal" && digest === "equal"));
  strictEqual(
    ranks.calls.filter(({ op }) => op === "train").length,
    ROUNDS,
    "no batch is redone twice",
  );
  deepStrictEqual(
    ranks.calls.filter(({ op }) => op === "load").length,
    1,
    "no checkpoint is believed",
  );
});

Deno.test("verify does not count a reference as a version", async () => {
  const { verify } = await done((path) => ({
    algorithm: { name: "grpo", kl_coef: 0.1 },
    reference: { path },
  }));
  const { equal, versions } = await verify();
  strictEqual(equal, true);
  deepStrictEqual(
    versions.map(({ group, number }) => [group, number]),
    [0, 1, 2, 3, 4, 5].map((n) => [undefined, n]),
  );
});

Deno.test("verify --from looks at later versions only, but redoes what they rest on", async () => {
  const { ranks, verify } = await done();
  const { equal, versions } = await verify({ from: 4 });
  ok(equal);
  deepStrictEqual(versions.map(({ number }) => number), [4, 5]);
  strictEqual(ranks.calls.filter(({ op }) => op === "train").length, ROUNDS);
  await rejects(
    verify({ from: 9 }),
    /Cannot verify run 'run' because it has no version with 9 or more batches/,
  );
});

Deno.test("verify ends at the first version whose recorded loss is another", async () => {
  const { store, verify } = await done();
  const over = changed(store, "note/version", (note: VersionNote, n) => {
    return n === 3
      ? { ...note, steps: note.steps.map((step) => ({ ...step, loss: step.loss! + 1e-9 })) }
      : note;
  });
  const { equal, versions } = await verify({ over });
  strictEqual(equal, false);
  deepStrictEqual(versions.map(({ steps }) => steps), ["equal", "equal", "equal", "different"]);
  match(versions.at(-1)!.detail!, /Cannot redo version .* differs from the recorded one/);
});

Deno.test("verify finds different weights behind equal losses and norms", async () => {
  const { store, verify } = await done();
  type Noted = { publication: { version: string; digest: string }; policy?: Policy };
  const over = changed(store, "note/publication", (note: Noted, n) => {
    return n === 2
      ? { ...note, publication: { ...note.publication, digest: "0".repeat(64) } }
      : note;
  });
  const checkpoints = changed(
    over,
    "note/checkpoint",
    (note: { digest: string }) => ({ ...note, version: "none" }),
  );
  const { equal, versions } = await verify({ over: checkpoints });
  strictEqual(equal, false);
  strictEqual(versions.at(-1)!.number, 2);
  deepStrictEqual([versions.at(-1)!.steps, versions.at(-1)!.digest], ["equal", "different"]);
});

Deno.test("verify refuses a run that has trained nothing", async () => {
  const { store, artifacts, dir } = await stores();
  const { resources } = await fakeRun({
    store,
    run: "new",
    artifacts,
    dir,
    rows: { train: rowsOf(2) },
  });
  ok(resources.length > 0);
  const head = await store.create({
    id: "new",
    name: "new",
    entry: "",
    graph: "{}",
    graph_hash: "",
    config: "{}",
    packages: "{}",
  });
  const trainer = { publish: () => Promise.reject(new Error("not asked")) };
  await rejects(
    verifyVersions(store, head, { artifacts, trainer, dir }),
    /it has recorded no policy version yet/,
  );
});
