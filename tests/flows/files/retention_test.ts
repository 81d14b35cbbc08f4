import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { type Candidate, type KeepPolicy, kept } from "../../../flows/files/retention.ts";

const candidate = (number: number, metric: number | null = null): Candidate => ({
  version: `v${number}`,
  number,
  round: number,
  metric,
});
const LAST: KeepPolicy = { keep_last: 1, keep_every: null, keep_best: null };
const names = (reasons: Map<string, unknown>) => [...reasons.keys()].sort();

Deno.test("kept() names every reason that a checkpoint has", () => {
  const all = [candidate(2, 0.9), candidate(4, 0.3), candidate(6, 0.9), candidate(8, 0.1)];
  const policy: KeepPolicy = {
    keep_last: 2,
    keep_every: 4,
    keep_best: { metric: "m", mode: "max", count: 1 },
  };
  deepStrictEqual([...kept(all, policy, 8)].toSorted(), [
    ["v4", ["every"]],
    ["v6", ["last", "best"]], // Of two equals the newer is the best.
    ["v8", ["last", "every", "in_use"]],
  ]);
});

Deno.test("kept() with mode min takes the lowest, and none that has no number", () => {
  const all = [candidate(2, 0.4), candidate(4, null), candidate(6, NaN), candidate(8, 0.5)];
  const best = { ...LAST, keep_best: { metric: "m", mode: "min", count: 3 } } satisfies KeepPolicy;
  deepStrictEqual(names(kept(all, best, 8)), ["v2", "v8"]);
});

Deno.test("kept() compares no value of a metric that was configured before", () => {
  const of = (metric_name: string, one: Candidate) => ({ ...one, metric_name });
  const all = [
    of("reward/mean", candidate(2, 0.9)),
    of("eval/pass_at_1", candidate(4, 0.2)),
    of("eval/pass_at_1", candidate(6, 0.1)),
    of("eval/pass_at_1", candidate(8, 0)),
  ];
  const keep_best = { metric: "eval/pass@1", mode: "max" as const, count: 1 };
  deepStrictEqual(names(kept(all, { ...LAST, keep_best }, 8)), ["v4", "v8"]);
  const older = [candidate(2, 0.9), ...all.slice(1)]; // It does not say which metric it is.
  deepStrictEqual(names(kept(older, { ...LAST, keep_best }, 8)), ["v2", "v8"]);
});

Deno.test("kept() keeps what the oldest version in use is rebuilt from", () => {
  const all = [2, 4, 6, 8].map((number) => candidate(number));
  deepStrictEqual(names(kept(all, LAST, 5)), ["v4", "v8"]);
  deepStrictEqual(names(kept(all, LAST, 1)), ["v8"]); // Before them all: the base is enough.
});

Deno.test("kept() always keeps the newest and a way to what is in use", () => {
  const candidates = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), {
    minLength: 1,
    maxLength: 25,
  }).chain((numbers) =>
    fc.tuple(
      ...numbers.toSorted((a, b) => a - b).map((number) =>
        fc.record({
          version: fc.constant(`v${number}`),
          number: fc.constant(number),
          round: fc.option(fc.constant(number)),
          metric: fc.option(fc.double({ noDefaultInfinity: true })),
        })
      ),
    )
  );
  const policies = fc.record({
    keep_last: fc.integer({ min: 1, max: 4 }),
    keep_every: fc.option(fc.integer({ min: 1, max: 12 })),
    keep_best: fc.option(fc.record({
      metric: fc.constant("m"),
      mode: fc.constantFrom("max" as const, "min" as const),
      count: fc.integer({ min: 1, max: 3 }),
    })),
  });
  fc.assert(
    fc.property(candidates, policies, fc.integer({ min: 0, max: 60 }), (all, policy, oldest) => {
      const reasons = kept(all, policy, oldest);
      const stays = all.filter(({ version }) => reasons.has(version));
      ok(all.slice(-policy.keep_last).every(({ version }) => reasons.has(version)));
      const before = (list: Candidate[]) =>
        list.filter(({ number }) => number <= oldest).at(-1)?.version;
      deepStrictEqual(before(stays), before(all));
      const every = policy.keep_every;
      const forever = every === null
        ? []
        : all.filter(({ round }) => round !== null && round % every === 0);
      ok(forever.every(({ version }) => reasons.has(version)));
      ok(stays.length <= policy.keep_last + forever.length + (policy.keep_best?.count ?? 0) + 1);
      // What goes now is not asked for later: deciding twice is deciding once.
      deepStrictEqual(Object.fromEntries(kept(stays, policy, oldest)), Object.fromEntries(reasons));
    }),
  );
});
