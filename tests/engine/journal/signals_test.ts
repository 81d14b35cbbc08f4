import { deepStrictEqual, rejects } from "node:assert/strict";
import { setImmediate } from "node:timers";
import { type GraphDefinition, signalRun } from "../../../engine/mod.ts";
import { bench, soleStage } from "../fixtures.ts";

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

Deno.test("signalRun() reaches a body that another engine runs", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.signalled("approve"));
  await used.engine.create(definition as GraphDefinition, {}, { id: "run" });
  const ended = used.engine.execute("run", built);
  while (!used.store.rows("run").some((row) => row.kind === "intent")) await nextTurn();
  await signalRun(used.store, "run", { name: "approve", value: { by: "ada" } });
  await used.clock.advance(60_000);
  deepStrictEqual(await ended, { status: "done", output: { by: "ada" } });
});

Deno.test("signalRun() is kept from the start; a second value is refused", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.signalled("approve"));
  await used.engine.create(definition as GraphDefinition, {}, { id: "run" });
  await signalRun(used.store, "run", { name: "approve", value: true });
  await signalRun(used.store, "run", { name: "approve", value: true });
  await rejects(
    signalRun(used.store, "run", { name: "approve", value: false }),
    /was already sent: its value is true/,
  );
  deepStrictEqual(await used.engine.execute("run", built), { status: "done", output: true });
  await rejects(signalRun(used.store, "run", { name: "late" }), /because it has ended: it is done/);
  const long = "x".repeat(70_000);
  await rejects(
    signalRun(used.store, "run", { name: "big", value: long }),
    /too long: 70002 characters/,
  );
});
