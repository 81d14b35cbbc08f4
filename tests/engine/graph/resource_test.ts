import { deepStrictEqual, match, ok } from "node:assert/strict";
import { defineResource, provide } from "../../../engine/mod.ts";
import { bench, runOnce, soleStage } from "../fixtures.ts";

const Rows = defineResource<string[]>("rows");

Deno.test("a stage gets what was provided under the token's name, itself", async () => {
  const rows = ["a"];
  const { definition } = soleStage((_, ctx) => {
    ctx.resource(defineResource<string[]>("rows")).push("b");
    return ctx.resource(Rows);
  });
  deepStrictEqual(await runOnce(bench({ resources: [provide(Rows, rows)] }), definition), {
    status: "done",
    output: ["a", "b"],
  });
  deepStrictEqual(rows, ["a", "b"]);
});

Deno.test("a resource that was not provided fails the stage by name", async () => {
  const { definition } = soleStage((_, ctx) => ctx.resource(Rows));
  const outcome = await runOnce(
    bench({ resources: [provide(defineResource("paths"), {})] }),
    definition,
  );
  ok(outcome.status === "failed");
  match(
    outcome.error.message,
    /Cannot give resource 'rows' to 'sole' because the engine has: sampler, trainer, paths\. Add/,
  );
});

Deno.test("a resource may be undefined, null or false", async () => {
  for (const value of [null, false]) {
    const { definition } = soleStage((_, ctx) => ctx.resource(defineResource<unknown>("value")));
    const used = bench({ resources: [{ name: "value", value }] });
    deepStrictEqual(await runOnce(used, definition), { status: "done", output: value });
  }
});
