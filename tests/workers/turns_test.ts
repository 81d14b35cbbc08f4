import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import type { Operator } from "../../workers/mod.ts";
import { Turns } from "../../workers/turns.ts";
import { gate } from "./fixtures.ts";

/** Workers by name, and who used them in what order. */
function bench(names: string) {
  const turns = new Turns();
  const used: string[] = [];
  const operators = new Map<string, Operator>(
    [...names].map((name) => [name, { call: () => Promise.reject(new Error("not called")) }]),
  );
  const nameOf = (operator: Operator) => [...operators].find(([, known]) => known === operator)![0];
  const take = (
    who: string,
    among: string,
    { until = Promise.resolve(), signal }: { until?: Promise<void>; signal?: AbortSignal } = {},
  ) =>
    turns.take([...among].map((name) => operators.get(name)!), { signal }, async (operator) => {
      used.push(`${who} begins on ${nameOf(operator)}`);
      await until;
      used.push(`${who} ends`);
      return who;
    });
  return { take, used };
}

Deno.test("Turns.take() gives a worker to one caller at a time, in the order they came", async () => {
  const { take, used } = bench("a");
  deepStrictEqual(await Promise.all([take("1", "a"), take("2", "a"), take("3", "a")]), [
    "1",
    "2",
    "3",
  ]);
  deepStrictEqual(used, ["1", "2", "3"].flatMap((who) => [`${who} begins on a`, `${who} ends`]));
});

Deno.test("Turns.take() goes on after work that failed", async () => {
  const { take, used } = bench("a");
  const first = take("1", "a", { until: Promise.reject(new Error("no")) });
  const second = take("2", "a");
  await rejects(first, /^Error: no$/);
  strictEqual(await second, "2");
  deepStrictEqual(used, ["1 begins on a", "2 begins on a", "2 ends"]);
});

Deno.test("Turns.take() gives a freed worker to the oldest caller that can use it", async () => {
  const { take, used } = bench("ab");
  const [a, b] = [gate(), gate()];
  const all = [take("1", "a", { until: a.opened }), take("2", "b", { until: b.opened })];
  all.push(take("3", "a"), take("4", "ab"), take("5", "b"));
  b.open();
  await all[4];
  a.open();
  await Promise.all(all);
  deepStrictEqual(used.filter((event) => event.includes("begins")), [
    "1 begins on a",
    "2 begins on b",
    "4 begins on b",
    "5 begins on b",
    "3 begins on a",
  ]);
});

Deno.test("Turns.take() lets a caller leave that waits", async () => {
  const { take } = bench("a");
  const slow = gate();
  const leaving = new AbortController();
  const first = take("1", "a", { until: slow.opened });
  const second = take("2", "a", { signal: leaving.signal });
  const third = take("3", "a");
  leaving.abort(new Error("enough"));
  await rejects(second, /^Error: enough$/);
  slow.open();
  deepStrictEqual(await Promise.all([first, third]), ["1", "3"]);
});

Deno.test("Turns.take() passes on a turn that comes as its caller leaves", async () => {
  const { take, used } = bench("a");
  const slow = gate();
  const leaving = new AbortController();
  const first = take("1", "a", { until: slow.opened });
  const second = take("2", "a", { signal: leaving.signal });
  const third = take("3", "a");
  await new Promise((resolve) => setTimeout(resolve, 0)); // A turn: the first one has begun.
  // Between the end of the first one's work and the next one's beginning.
  void slow.opened.then(() => leaving.abort(new Error("enough")));
  slow.open();
  await rejects(second, /^Error: enough$/);
  deepStrictEqual(await Promise.all([first, third]), ["1", "3"]);
  deepStrictEqual(used.filter((event) => event.startsWith("2")), []);
});
