import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { hubName, hubNameText } from "../../data/mod.ts";

const COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca";

Deno.test("hubName() reads a name, its revision and its commit", () => {
  const model = "Qwen/Qwen3-0.6B";
  const cases: [string, string, string | null][] = [
    [model, "main", null],
    [`${model}@main`, "main", null],
    [`${model}@refs/pr/1`, "refs/pr/1", null],
    [`${model}@${COMMIT}`, COMMIT, COMMIT],
    [`${model}@main@${COMMIT}`, "main", COMMIT],
  ];
  for (const [text, revision, commit] of cases) {
    deepStrictEqual(hubName(text), { repository: model, revision, commit }, text);
  }
});

Deno.test("hubName() is null for what can only be a path, and for a name that is cut", () => {
  const paths = ["model", "/a/b", "./a/b", "../a", "~/a", ".cache/a", "a/b/c", "a/../b", "a/", ""];
  const cut = ["a/b@", "a/b@main@", "a/b@main@c1899de", "a/b c", "a/b@x y", "a/.b", "a/-b"];
  for (const text of [...paths, ...cut]) strictEqual(hubName(text), null, text);
});

Deno.test("hubNameText() is one text for all spellings of a name", () => {
  const of = (text: string) => hubNameText(hubName(text)!);
  deepStrictEqual([of("a/b"), of("a/b@main")], ["a/b@main", "a/b@main"]);
  for (const text of [`a/b@v1@${COMMIT}`, `a/b@${COMMIT}`]) strictEqual(of(text), text);
});
