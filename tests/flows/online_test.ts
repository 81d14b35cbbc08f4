import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import type { JournalRow } from "../../engine/mod.ts";
import { Crashed, FakeSampler, FakeTrainer, MemoryStore } from "../../testing/mod.ts";
import { runView } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import { execute, onlineConfig, rowsOf, stores } from "./fixtures.ts";

const NOTHING_LIVE = { workers: [], metrics: {} };

Deno.test("online: rounds read the stream of draws in order, and none is read twice", async () => {
  const { store, artifacts, dir, model } = await stores();
  const { samplers } = await execute(online, onlineConfig(model), { store, artifacts, dir });
  const draws = samplers[0]!.calls.filter(({ op }) => op === "generate")
    .map(({ args }) =>
      (args as { slab: { draws: { draw: number }[] } }).slab.draws.map(({ draw }) => draw)
    );
  deepStrictEqual(draws.toSorted((a, b) => a[0]! - b[0]!), [[0], [1], [2], [3], [4], [5]]);
});

Deno.test("online carries the version over a round without a usable group", async () => {
  const { store, artifacts, dir, model } = await stores();
  // Draws of the second round (2, 3) all get one length.
  const complete = ({ draw, sample }: { draw: number; sample: number }) =>
    draw === 2 || draw === 3 ? "11" : "1".repeat(1 + sample);
  const config = onlineConfig(model);
  const { outcome, trainer } = await execute(online, config, {
    store,
    artifacts,
    dir,
    samplers: [new FakeSampler({ complete })],
  });
  strictEqual(outcome.status, "done");
  strictEqual(trainer.calls.filter(({ op }) => op === "train").length, 2);
  const rounds = store.rows("run").filter(({ kind }) => kind === "round").map(({ value }) =>
    JSON.parse(value)
  );
  const versions = rounds.map(({ carried }) => carried.policy.version);
  strictEqual(versions[1], versions[0]);
  notStrictEqual(versions[2], versions[1]);
  const view = await runView(store, (await store.head("run"))!, NOTHING_LIVE);
  deepStrictEqual([view.ledger.trained, view.ledger.filtered, view.policy!.number], [4, {
    zero_advantage: 2,
  }, 2]);
});

Deno.test("online scores old_logp only for more than one optimizer step", async () => {
  for (const updates_per_batch of [1, 2]) {
    const { store, artifacts, dir, model } = await stores();
    const config = onlineConfig(model, { trainer: { optimizer: { lr: 0.1 }, updates_per_batch } });
    const { trainer } = await execute(online, config, { store, artifacts, dir });
    strictEqual(
      trainer.calls.filter(({ op }) => op === "score").length,
      updates_per_batch === 1 ? 0 : 3,
    );
    const row = store.rows("run").find(({ kind, key }) =>
      kind === "result" && /round\/1\/assign_credit/.test(key)
    )!;
    const { output } = JSON.parse(row.value) as {
      output: { batch: { sha256: string; bytes: number } };
    };
    const { columns } = await artifacts.getJson(output.batch) as {
      columns: Record<string, { kind: string }>;
    };
    deepStrictEqual(
      Object.keys(columns).sort(),
      updates_per_batch === 1 ? ["advantage"] : ["advantage", "old_logp"],
    );
  }
});

Deno.test("online records each deletion before the checkpoint's files go", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, { rounds: 4, checkpoints: { every_rounds: 1, keep_last: 2 } });
  const seen: { recorded: boolean; present: boolean }[] = [];
  const rename = Deno.renameSync; // What a removal begins with.
  Deno.renameSync = (from, to) => {
    const notes = store.rows("run").filter(({ kind }) => kind === "note/checkpoint_dropped");
    if (String(to).includes("/.removing-")) {
      const recorded = notes.some(({ value }) => JSON.parse(value).dir === from);
      seen.push({ recorded, present: Deno.statSync(from).isDirectory });
    }
    rename(from, to);
  };
  try {
    await execute(online, config, { store, artifacts, dir });
  } finally {
    Deno.renameSync = rename;
  }
  deepStrictEqual(seen, [{ recorded: true, present: true }, { recorded: true, present: true }]);
  const remaining = (await Array.fromAsync(Deno.readDir(`${dir}/checkpoints`))).map(({ name }) =>
    name.slice(0, 6)
  ).sort();
  deepStrictEqual(remaining, ["000003", "000004"]);
});

Deno.test("online removes an unrecorded checkpoint with the next one", async () => {
  const { store, artifacts, dir, model } = await stores();
  await Deno.mkdir(`${dir}/checkpoints/000001-0123456789ab-7-1/state`, { recursive: true });
  const config = onlineConfig(model, { rounds: 2, checkpoints: { every_rounds: 1, keep_last: 1 } });
  await execute(online, config, { store, artifacts, dir });
  const remaining = (await Array.fromAsync(Deno.readDir(`${dir}/checkpoints`))).map(({ name }) =>
    name.slice(0, 6)
  );
  deepStrictEqual(remaining, ["000002"]);
});

/**
 * A store whose run is taken over right after the first row of this kind is durable, as from an
 * engine that is frozen there.
 */
class TakenAfter extends MemoryStore {
  constructor(readonly after: { kind: string; takeOver: () => Promise<void> }) {
    super();
  }

  override async append(...[run, epoch, rows]: Parameters<MemoryStore["append"]>) {
    const appended = await super.append(run, epoch, rows);
    if (rows.some(({ kind }) => kind === this.after.kind)) {
      const owner = { boot_id: "other", host: "other", pid: 1, process_start: "s" };
      await this.claim(run, owner, { lease_ms: 1000, force: true });
      await this.after.takeOver();
    }
    return appended;
  }
}

const REMOVERS = [["note/checkpoint", "checkpoints"], [
  "note/publication_dropped",
  "publications",
]] as const;
for (const [kind, where] of REMOVERS) {
  Deno.test(`online: an engine that was superseded right after its ${kind} removes nothing`, async () => {
    const { artifacts, dir, model } = await stores();
    const names = async () =>
      (await Array.fromAsync(Deno.readDir(`${dir}/${where}`))).map(({ name }) => name).sort();
    let before: string[] = [];
    const takeOver = async () => {
      await Deno.mkdir(
        `${dir}/${where}/${where === "checkpoints" ? "000009-of-the-next-engine" : "f".repeat(16)}`,
      );
      before = await names();
    };
    const store = new TakenAfter({ kind, takeOver });
    const config = onlineConfig(model, {
      rounds: 6,
      checkpoints: { every_rounds: 1, keep_last: 1 },
    });
    const { outcome } = await execute(online, config, { store, artifacts, dir });
    strictEqual(outcome.status, "fenced");
    ok(before.length > 0);
    deepStrictEqual(await names(), before);
  });
}

Deno.test("online refuses to resume with changed rows until they are restored", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model);
  const crashing = store.restarted({ crash_after_appends: 6 });
  await rejects(execute(online, config, { store: crashing, artifacts, dir }), { name: "Crashed" });
  const changed = { train: rowsOf(16, "another-digest"), eval: rowsOf(4) };
  const again = store.restarted();
  const { outcome } = await execute(online, config, {
    store: again,
    artifacts,
    dir,
    rows: changed,
  });
  strictEqual(outcome.status, "failed");
  const { error } = outcome as { error: { message: string; code: string } };
  match(
    error.message,
    /'train' rows because their files have changed.*16 rows then.*rows-16.*another-dige.*Restore/,
  );
  const mended = await execute(online, config, { store: again, artifacts, dir });
  strictEqual(mended.outcome.status, "done");
});

Deno.test("online: a split that the configuration does not give is named", async () => {
  const { store, artifacts, dir, model } = await stores();
  const { outcome } = await execute(online, onlineConfig(model), {
    store,
    artifacts,
    dir,
    rows: {},
  });
  match((outcome as { error: { message: string } }).error.message, /'train' rows.*add data\.train/);
});

Deno.test("online measures each step against the sampling policy, once", async () => {
  const mismatch = { low: 0.2, high: 0.3, ratio: "token" };
  // The engine dies once this version is recorded; the first checkpoint is of the third.
  for (const newest of [0, 1, 2]) {
    const { store: first, ...home } = await stores();
    let store = first;
    const settings = {
      checkpoints: { every_rounds: 3 },
      algorithm: { name: "grpo", clip_high: 0.3 },
    };
    const config = onlineConfig(home.model, settings);
    const isNewest = ({ kind, value }: JournalRow) =>
      kind === "note/version" && JSON.parse(value).number === newest;
    let redone = 0;
    for (
      const death of [{ crash_after: (rows: readonly JournalRow[]) => rows.some(isNewest) }, {}]
    ) {
      store = store.restarted(death);
      const recorded = store.rows("run").filter(({ kind }) => kind === "note/version").map((
        { key },
      ) => key);
      const trainer = new FakeTrainer({ artifacts: home.artifacts });
      await execute(online, config, { ...home, store, trainer }).catch((error) =>
        ok(error instanceof Crashed)
      );
      for (const { args } of trainer.calls.filter(({ op }) => op === "train")) {
        const step = args as { to: string; mismatch?: unknown };
        deepStrictEqual(step.mismatch, recorded.includes(step.to) ? null : mismatch);
        if (recorded.includes(step.to)) redone++;
      }
    }
    strictEqual(redone, newest);
  }
});
