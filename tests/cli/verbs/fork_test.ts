import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { endAll, exists, freshHome, json, rl, SMALL } from "../fixtures.ts";

type Shown = {
  status: string;
  policy: { digest: string };
  ledger: unknown;
  parent: unknown;
  recoveries: unknown[];
};
type Sample = { round: number; policy: string; completion: string };

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
// Checkpoints after rounds 3 and 4: round 2 has none.
const fewer = [
  "warmup.rounds=1",
  "online.rounds=4",
  "evaluate.problems=4",
  "checkpoints.every_rounds=3",
];
const parent = await rl(["run", SMALL, ...fewer, ...at, "--id", "a"]);
const shown = (id: string) => json<Shown>(["show", id, ...at]);
const rollouts = (id: string, round: number) =>
  json<Sample[]>(["rollouts", id, "--round", String(round), ...at]);

Deno.test("fork from a round without a checkpoint, with nothing changed, ends with the parent's weights and ledger", async () => {
  strictEqual(parent.code, 0, parent.err);
  const { code, err } = await rl(["fork", "a", "--round", "2", ...at, "--id", "b"]);
  strictEqual(code, 0, err);
  ok(!/^round [12]\//m.test(err) && /^round 3\/4/m.test(err), err);
  const [a, b] = [await shown("a"), await shown("b")];
  deepStrictEqual([b.status, b.policy, b.ledger], ["done", a.policy, a.ledger]);
  deepStrictEqual(b.parent, { run: "a", loop: "round", round: 2 });
  const runs = await json<{ id: string; parent: unknown }[]>(["runs", ...at]);
  deepStrictEqual(runs.map(({ id, parent }) => [id, parent]), [["b", { run: "a", round: 2 }], [
    "a",
    null,
  ]]);
  // What it took over can be looked at as its own.
  for (const round of [1, 3]) {
    deepStrictEqual(await rollouts("b", round), await rollouts("a", round));
  }
  ok(await exists(`${home}/runs/b/final/model.safetensors`));
});

Deno.test("fork with other settings differs from the next round on, and only from there", async () => {
  const { code, err } = await rl([
    "fork",
    "a",
    "--round",
    "2",
    "online.optimizer.lr=0.01",
    ...at,
    "--id",
    "c",
  ]);
  strictEqual(code, 0, err);
  notStrictEqual((await shown("c")).policy.digest, (await shown("a")).policy.digest);
  // Round 3 samples with what round 2 trained, round 4 with what the fork trained.
  const policies = async (id: string, round: number) =>
    (await rollouts(id, round)).map(({ policy }) => policy);
  deepStrictEqual(await policies("c", 3), await policies("a", 3));
  notStrictEqual((await policies("c", 4))[0], (await policies("a", 4))[0]);
});

Deno.test("fork of what cannot be is exit 2 with the reason, and leaves no run", async () => {
  for (
    const [args, words] of [
      [["--round", "9"], /round 9 of 'round' because only its closed rounds 1 to 4 are kept/],
      [["--round", "x"], /at round 'x': give a whole number/],
      [["--round", "round/2", "model.seed=5"], /prefix has fixed:\n {2}model: every version/],
      [["--round", "2", "trainer.ranks=0"], /override trainer\.ranks/],
      [["--round", "2", "sampler.tokns_max=4"], /did you mean/],
    ] as [string[], RegExp][]
  ) {
    const { code, err } = await rl(["fork", "a", ...args, ...at, "--id", "bad"]);
    strictEqual(code, 2, err);
    match(err, words);
  }
  strictEqual((await rl(["show", "bad", ...at])).code, 2);
  const detached = await rl(["fork", "a", "--round", "3", "--detach", ...at, "--id", "later"]);
  deepStrictEqual([detached.code, detached.out], [0, "later\n"], detached.err);
  strictEqual((await shown("later")).status, "queued");
  strictEqual((await rl(["cancel", "later", ...at])).code, 0);
});

Deno.test("gc --rows leaves every run shown as it was, its checkpoints whole, and its kept rounds ready to fork", async () => {
  const before = await shown("a");
  const dry = await json<{ bytes: number }>([
    "gc",
    "--rows",
    "--younger-than",
    "0",
    "--dry-run",
    ...at,
  ]);
  const done = await json<{ bytes: number; rows: { count: number } }>([
    "gc",
    "--rows",
    "--younger-than",
    "0",
    ...at,
  ]);
  ok(
    dry.bytes > 0 && done.bytes >= dry.bytes && done.rows.count > 0,
    JSON.stringify({ dry, done }),
  );
  const again = await rl(["gc", "--rows", "--younger-than", "0", ...at]);
  match(again.out, /kept round\/3 and later of a: a checkpoint is of this round\n.*freed 0 B\n$/s);
  deepStrictEqual({ ...await shown("a"), epoch: 0, updated_at: "" }, {
    ...before,
    epoch: 0,
    updated_at: "",
  });
  strictEqual((await rl(["checkpoints", "a", "--verify", ...at])).code, 0);
  const { code, err } = await rl(["fork", "a", "--round", "3", ...at, "--id", "d"]);
  strictEqual(code, 0, err);
  strictEqual((await shown("d")).policy.digest, before.policy.digest);
  const gone = await rl(["fork", "a", "--round", "2", ...at, "--id", "e"]);
  deepStrictEqual(
    [gone.code, /only its closed rounds 3 to 4 are kept/.test(gone.err)],
    [2, true],
    gone.err,
  );
});
