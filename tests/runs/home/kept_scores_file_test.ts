import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { type KeptLimits, KeptScoresFile } from "../../../runs/home/kept_scores_file.ts";
import { scratch } from "../../flows/fixtures.ts";

const ONE = { score: 0.5, metrics: { steps: 3 } };
const NONE = { score: null, metrics: {} };
const MANY: KeptLimits = { entries_max: 100, bytes_max: 2 ** 20 };

const pathOf = (home: string) => `${home}/cache/scores/kept.db`;

/** What a new engine finds after `between`, and what it says. */
async function again(between: (path: string) => void | Promise<void>) {
  const home = await scratch();
  const first = new KeptScoresFile(home);
  first.keep([["a", ONE], ["b", NONE]]);
  first.close();
  await between(pathOf(home));
  const notices: string[] = [];
  const next = new KeptScoresFile(home, { say: (text) => notices.push(text) });
  const found = next.find(["a", "x", "b"]);
  next.keep([["c", ONE]]);
  const kept = next.find(["c"]);
  next.close();
  return { found, kept, notices };
}

Deno.test("results are found by another engine of the home", async () => {
  const { found, kept, notices } = await again(() => {});
  deepStrictEqual([found, kept, notices], [[ONE, null, NONE], [ONE], []]);
});

Deno.test("two engines share the file, and the first result of a key stays", async () => {
  const home = await scratch();
  const [a, b] = [new KeptScoresFile(home), new KeptScoresFile(home)];
  a.keep([["k", ONE]]);
  b.keep([["k", NONE], ["l", NONE]]);
  deepStrictEqual(a.find(["k", "l"]), [ONE, NONE]);
  a.close();
  b.close();
});

for (
  const [what, damage] of Object.entries({
    lost: (path: string) => Deno.removeSync(path),
    torn: (path: string) => Deno.writeTextFileSync(path, "no database at all, but long enough"),
    cut: (path: string) => Deno.truncateSync(path, 5000),
    empty: (path: string) => Deno.writeTextFileSync(path, ""),
  })
) {
  Deno.test(`a file that is ${what} is made anew`, async () => {
    const { found, kept, notices } = await again(damage);
    deepStrictEqual([found, kept, notices], [[null, null, null], [ONE], []]);
  });
}

Deno.test("a value that was changed in its place is no result", async () => {
  const { found } = await again((path) => {
    const bytes = Deno.readFileSync(path);
    const text = new TextDecoder("latin1").decode(bytes);
    const at = text.indexOf('"score":0.5');
    bytes[at + 10] = "6".charCodeAt(0);
    Deno.writeFileSync(path, bytes);
  });
  deepStrictEqual(found, [null, null, NONE]);
});

Deno.test("a place that cannot be used is said once, and nothing is kept", async () => {
  const { found, kept, notices } = await again((path) => {
    Deno.removeSync(path);
    Deno.mkdirSync(path);
  });
  deepStrictEqual([found, kept, notices.length], [[null, null, null], [null], 1]);
  match(notices[0]!, /^results of rewards are not kept: .*kept\.db: /);
});

Deno.test("the oldest results make room for new ones", async () => {
  const file = new KeptScoresFile(await scratch(), { limits: MANY });
  for (let i = 0; i < 250; i++) file.keep([[`${i}`, ONE]]);
  const found = file.find(Array.from({ length: 250 }, (_, i) => `${i}`));
  const first = found.findIndex((result) => result !== null);
  strictEqual(found.slice(first).includes(null), false, "only the oldest are gone");
  strictEqual(250 - first <= 100 && 250 - first >= 80, true, `${250 - first} are left`);
  file.close();
});

Deno.test("a file that is full is begun anew", async () => {
  const limits = { entries_max: 1000, bytes_max: 2 ** 16 };
  const file = new KeptScoresFile(await scratch(), { limits });
  const long = { score: 1, metrics: { ["x".repeat(5000)]: 1 } };
  for (let i = 0; i < 40; i++) file.keep([[`${i}`, long]]);
  deepStrictEqual(file.find(["39"]), [long]);
  file.close();
});
