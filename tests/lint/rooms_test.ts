import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import plugin, { refusal } from "./rooms.ts";

Deno.test("refusal() names the room when an import is not in the table", () => {
  match(refusal("engine/graph.ts", "../data/mod.ts") ?? "", /Cannot import 'data' from 'engine'/);
  match(refusal("algs/grpo.ts", "../engine/mod.ts") ?? "", /allows data there/);
  match(refusal("examples/custom.ts", "../engine/mod.ts") ?? "", /allows mod.ts there/);
  match(refusal("flows/online.ts", "../runs/mod.ts") ?? "", /Cannot import 'runs'/);
  match(refusal("runs/session.ts", "../testing/mod.ts") ?? "", /Cannot import 'testing'/);
  match(refusal("flows/stages/train.ts", "../../cli/main.ts") ?? "", /Cannot import 'cli'/);
});

Deno.test("refusal() is null for what the table allows, for packages and inside a room", () => {
  const allowed: [string, string][] = [
    ["workers/hub.ts", "../engine/mod.ts"],
    ["workers/hub.ts", "./group.ts"],
    ["engine/graph.ts", "zod"],
    ["engine/sqlite_store.ts", "node:sqlite"],
    ["examples/custom.ts", "../mod.ts"],
    ["tests/engine/graph_test.ts", "../../engine/mod.ts"],
  ];
  deepStrictEqual(allowed.map(([from, to]) => refusal(from, to)), allowed.map(() => null));
});

Deno.test("the lint rule reports a forbidden import and a forbidden re-export where they stand", () => {
  const root = new URL("../../", import.meta.url).pathname;
  const source =
    `import { z } from "zod";\nimport { a } from "../data/mod.ts";\nexport * from "../cli/main.ts";\na(z);\n`;
  const found = Deno.lint.runPlugin(plugin, `${root}engine/x.ts`, source);
  strictEqual(found.length, 2);
  deepStrictEqual(found.map((diagnostic) => diagnostic.id), ["holdfast/rooms", "holdfast/rooms"]);
});
