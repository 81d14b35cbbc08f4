import { deepStrictEqual } from "node:assert/strict";
import { lines } from "./parsed.ts";

Deno.test("a block that contains itself through an alias is refused at the alias", async () => {
  deepStrictEqual(await lines([], "flow: online\nx: &a\n  y: { z: *a }\n"), [
    "DIR/x.yaml:3:11 x.y.z: the alias names a block that contains it; write the value out",
  ]);
});

Deno.test("a value used through an alias is told at its anchor", async () => {
  const text = `flow: quickstart
warmup: { rounds: 1, rows_per_round: 4, optimizer: &o { lr: fast } }
online: { rounds: 1, prompts_per_round: 4, samples_per_prompt: 2, optimizer: *o }
`;
  deepStrictEqual(await lines([], text), [
    'DIR/x.yaml:2:61 warmup.optimizer.lr: expected a number, got "fast"',
    'DIR/x.yaml:2:61 online.optimizer.lr: expected a number, got "fast"',
  ]);
});
