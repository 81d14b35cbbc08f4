import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import plugin, { refusal } from "./rooms.ts";

Deno.test("refusal() names the room when an import is not in the table", () => {
  match(refusal("engine/graph.ts", "../data/mod.ts") ?? "", /Cannot import 'data' from 'engine'/);
  match(refusal("algs/grpo.ts", "../engine/mod.ts") ?? "", /allows data there/);
  match(refusal("examples/custom.ts", "../engine/mod.ts") ?? "", /allows nothing there/);
  match(refusal("examples/custom.ts", "../mod.ts") ?? "", /allows nothing there/);
  match(refusal("examples/custom.ts", "../entry/engine.ts") ?? "", /allows nothing there/);
  match(refusal("flows/online.ts", "../runs/mod.ts") ?? "", /Cannot import 'runs'/);
  match(refusal("runs/session.ts", "../testing/mod.ts") ?? "", /Cannot import 'testing'/);
  match(refusal("flows/stages/train.ts", "../../cli/main.ts") ?? "", /Cannot import 'cli'/);
});

Deno.test("refusal() names the room's mod.ts when a product room goes past it, and lets tests", () => {
  match(
    refusal("configs/rules.ts", "../workers/trainer_config.ts") ?? "",
    /'workers\/trainer_config.ts' .* 'workers\/mod.ts'/,
  );
  match(
    refusal("flows/stages/x.ts", "../../algs/language/mod.ts") ?? "",
    /'algs\/language\/mod.ts' .* 'algs\/mod.ts'/,
  );
  match(refusal("bench/x.ts", "../runs/verify.ts") ?? "", /'runs\/verify.ts'/);
  strictEqual(refusal("tests/runs/verify_test.ts", "../../runs/verify.ts"), null);
  strictEqual(refusal("cli/main.ts", "../deno.json"), null);
});

Deno.test("refusal() keeps entry points for scripts: no room imports one, by name or by path", () => {
  match(refusal("runs/session.ts", "holdfast") ?? "", /Cannot import 'holdfast' from 'runs'/);
  match(
    refusal("testing/fake_run.ts", "holdfast/engine") ?? "",
    /Cannot import 'holdfast\/engine' from 'testing'/,
  );
  match(refusal("mod.ts", "holdfast/engine") ?? "", /Cannot import/);
  match(refusal("cli/run.ts", "../entry/runs.ts") ?? "", /Cannot import 'entry' from 'cli'/);
  match(refusal("cli/run.ts", "../mod.ts") ?? "", /Cannot import 'mod.ts' from 'cli'/);
});

Deno.test("refusal() is null for what the table allows, for packages and inside a room", () => {
  const allowed: [string, string][] = [
    ["workers/hub.ts", "../engine/mod.ts"],
    ["workers/hub.ts", "./group.ts"],
    ["engine/graph.ts", "zod"],
    ["engine/sqlite_store.ts", "node:sqlite"],
    ["examples/custom.ts", "holdfast"],
    ["examples/custom.ts", "holdfast/engine"],
    ["entry/testing.ts", "../testing/mod.ts"],
    ["tests/docs/entry_points_test.ts", "holdfast"],
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
