import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import { bench, NoConfig, runOnce } from "../fixtures.ts";
import { add, double, numbers } from "../stages.ts";

Deno.test("loop carries values, counts from 1 and returns the start for 0 rounds", async () => {
  const summed = (times: number) =>
    graph("sum", NoConfig, (g) => {
      const start = g.constant(100);
      return g.loop("round", { times, carry: { to: start } }, (r) => ({
        to: r.stage(add, { to: r.carried("to"), n: r.index }),
      })).to;
    });
  deepStrictEqual(await runOnce(bench(), summed(4)), { status: "done", output: 110 });
  deepStrictEqual(await runOnce(bench(), summed(0)), { status: "done", output: 100 });
});

Deno.test("until ends a loop after the round that asks for it", async () => {
  const isEnough = defineStage({
    name: "is_enough",
    version: 1,
    input: z.number(),
    output: z.boolean(),
    run: (n) => n >= 6,
  });
  const definition = graph(
    "until",
    NoConfig,
    (g) =>
      g.loop("round", { times: 100, carry: { to: g.constant(0) }, until: "enough" }, (r) => {
        const to = r.stage(add, { to: r.carried("to"), n: r.index });
        return { to, enough: r.stage(isEnough, to) };
      }).to,
  );
  const used = bench();
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: 6 });
  strictEqual(used.store.rows("run").filter((row) => row.kind === "round").length, 3);
});

Deno.test("loops nest in loops and branches; tallies count in all of them", async () => {
  const used = bench();
  const definition = graph(
    "nested",
    NoConfig,
    (g) =>
      g.loop("outer", { times: 2, carry: { to: g.constant(0) } }, (outer) => ({
        to: outer.when(
          outer.constant(true as boolean),
          (g) =>
            g.loop("inner", { times: 3, carry: { to: outer.carried("to") } }, (r) => ({
              to: r.stage(add, { to: r.carried("to"), n: 1 }),
            })).to,
          () => outer.constant(0),
        ),
      })).to,
  );
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: 6 });
  const rounds = used.store.rows("run").filter((row) => row.kind === "round");
  const tallies = rounds.map((
    row,
  ) => [row.key, JSON.parse(row.value).tally.added, JSON.parse(row.value).total.added]);
  deepStrictEqual(tallies, [
    ["outer/1/when/then/inner/1", 1, 1],
    ["outer/1/when/then/inner/2", 1, 2],
    ["outer/1/when/then/inner/3", 1, 3],
    ["outer/1", 3, 3],
    ["outer/2/when/then/inner/1", 1, 1],
    ["outer/2/when/then/inner/2", 1, 2],
    ["outer/2/when/then/inner/3", 1, 3],
    ["outer/2", 3, 6],
  ]);
});

Deno.test("a round's row goes with its last result: one append", async () => {
  const used = bench();
  const appended: string[][] = [];
  const append = used.store.append.bind(used.store);
  used.store.append = (run, epoch, rows) => {
    appended.push(rows.map((row) => `${row.kind} ${row.key}`));
    return append(run, epoch, rows);
  };
  const definition = graph(
    "rows",
    NoConfig,
    (g) =>
      g.loop("round", { times: 1, carry: { to: g.constant([0]) } }, (r) => {
        const doubled = r.map(double, r.stage(numbers([1, 2]), {}));
        return { to: doubled };
      }).to,
  );
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: [2, 4] });
  const closing = appended.find((rows) => rows.includes("round round/1"));
  ok(closing?.includes("result round/1/double#2"));
});

Deno.test("audit sees a closing round's totals; its complaint fails the run", async () => {
  const count = defineStage({
    name: "count",
    version: 1,
    input: z.strictObject({ n: z.number() }),
    output: z.number(),
    run: ({ n }, ctx) => {
      ctx.tally({ read: 2, trained: n === 3 ? 1 : 2 });
      return n;
    },
  });
  const used = bench();
  const seen: Record<string, number>[] = [];
  const definition = graph("audited", NoConfig, (g) =>
    g.loop("round", {
      times: 5,
      carry: { n: g.constant(0) },
      audit: ({ tally, carried, round }) => {
        seen.push({ ...tally, n: carried.n, round });
        return tally.read === tally.trained ? null : `read ${tally.read}, trained ${tally.trained}`;
      },
    }, (r) => ({ n: r.stage(count, { n: r.index }) })).n);
  const outcome = await runOnce(used, definition);
  ok(outcome.status === "failed");
  strictEqual(outcome.error.code, "audit");
  match(outcome.error.message, /round\/3.*read 6, trained 5/);
  deepStrictEqual(seen.slice(0, 2), [{ read: 2, trained: 2, n: 1, round: 1 }, {
    read: 4,
    trained: 4,
    n: 2,
    round: 2,
  }]);
  strictEqual(used.store.rows("run").filter((row) => row.kind === "round").length, 2);
});
