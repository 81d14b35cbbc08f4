import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { FencedError, NoProgressError } from "../../../engine/mod.ts";
import { gate, groupSpec } from "../fixtures.ts";
import { AGAIN, counted, type Engine, FIRST, never, withEngines } from "./following_engines.ts";

Deno.test("Inheritance: the next engine receives the result of a running operation", async () => {
  const { script, started, finish, runs } = counted();
  await withEngines(script, async ({ engine, agents }) => {
    const first = await engine();
    const lost = rejects(
      first.workers.group(groupSpec()).call("train", { x: 1 }, FIRST),
      FencedError,
    );
    await started.opened;
    const { workers, events } = await engine();
    const group = workers.group(groupSpec());
    strictEqual(await group.holds("train", { x: 1 }, AGAIN), true);
    const call = group.call("train", { x: 1 }, AGAIN);
    finish.open();
    deepStrictEqual(await call, { outputs: [1], blobs: [new Uint8Array([7])], generation: 1 });
    deepStrictEqual([runs.count, agents.length], [1, 1]);
    ok(events.all.some((event) => event.type === "agent" && event.state === "adopted"));
    await first.workers.stop();
    await lost;
    strictEqual(agents[0]!.alive, true);
  });
});

Deno.test("Inheritance: an unrecorded answer is delivered again, then released", async () => {
  const { script, finish, runs } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const recorded = gate();
    const second = await engine();
    const again = { ...AGAIN, recorded: () => recorded.opened };
    strictEqual((await second.workers.group(groupSpec()).call("train", null, again)).outputs[0], 1);
    const released = () => agents[0]!.received.filter(({ type }) => type === "release").length;
    strictEqual(released(), 0);
    recorded.open();
    // Comes after the release.
    await second.workers.group(groupSpec({ group: "other" })).call("score", null, FIRST);
    deepStrictEqual([released(), runs.count], [1, 1]);
  });
});

Deno.test("Inheritance: different arguments, key or attempt is different work", async () => {
  const { script, started, finish, runs } = counted();
  await withEngines(script, async ({ engine }) => {
    const first = await engine();
    rejects(first.workers.group(groupSpec()).call("train", { x: 1 }, FIRST), FencedError);
    await started.opened;
    const { workers } = await engine();
    const group = workers.group(groupSpec());
    const ended = { key: "k", attempt: 2, since_attempt: 2 };
    strictEqual(
      group.holds("train", { x: 2 }, AGAIN) ||
        group.holds("train", { x: 1 }, { ...AGAIN, key: "j" }),
      false,
    );
    strictEqual(group.holds("train", { x: 1 }, ended), false);
    const call = group.call("train", { x: 2 }, AGAIN);
    finish.open();
    deepStrictEqual([(await call).outputs, runs.count], [[2], 2]);
  });
});

Deno.test("Inheritance: a restarted stage receives its answers in their order", async () => {
  let load = 0;
  const train = () => (load === 0 ? { not_resident: null } : "trained");
  const script = { operations: { trainer: { train, load: () => (load += 1) } } };
  await withEngines(script, async ({ engine, agents }) => {
    const calls = async ({ workers }: Engine, options: typeof FIRST) => {
      const group = workers.group(groupSpec());
      const outputs: unknown[] = [];
      for (const op of ["train", "load", "train"]) {
        outputs.push((await group.call(op, null, options)).outputs[0]);
      }
      return outputs;
    };
    const wanted = [{ not_resident: null }, 1, "trained"];
    deepStrictEqual(await calls(await engine(), FIRST), wanted);
    deepStrictEqual(await calls(await engine(), { ...AGAIN, recorded: never }), wanted);
    strictEqual(load, 1);
    strictEqual(agents[0]!.received.filter(({ type }) => type === "task").length, 3);
  });
});

Deno.test("Inheritance: a group with a different spec is replaced", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const group = (await engine()).workers.group(groupSpec({ spec: { dtype: "other" } }));
    deepStrictEqual((await group.call("train", null, AGAIN)).generation, 2);
    strictEqual(agents.length, 1);
  });
});

Deno.test("Inheritance: the group's own limit ends work that nobody asks for", async () => {
  const { script, started } = counted();
  await withEngines(script, async ({ engine }) => {
    const first = await engine();
    rejects(first.workers.group(groupSpec()).call("train", null, FIRST), FencedError);
    await started.opened;
    const { workers, events } = await engine();
    const group = workers.group(groupSpec({ no_progress_ms: 50 }));
    deepStrictEqual((await group.call("score", null, { key: "other", attempt: 1 })).generation, 2);
    const replaced = await events.until(({ type }) => type === "replaced");
    ok(replaced.type === "replaced" && replaced.error instanceof NoProgressError);
  });
});

Deno.test("Inheritance: an unwanted group ends, and its name starts a new generation", async () => {
  const { script, started, runs } = counted();
  await withEngines(script, async ({ engine, agents }) => {
    const first = await engine();
    rejects(
      first.workers.group(groupSpec({ group: "trainer_redo" })).call("train", null, FIRST),
      FencedError,
    );
    await started.opened;
    const { workers } = await engine();
    workers.dismissInherited("trainer_redo");
    workers.dismissInherited("critic_redo"); // Nobody left one.
    const other = workers.group(groupSpec());
    await other.call("score", null, { ...FIRST, key: "other" }); // Comes after it.
    const stopped = agents[0]!.received.filter(({ type }) => type === "stop_group");
    deepStrictEqual(stopped.map((message) => (message as { group: string }).group), [
      "trainer_redo",
    ]);
    deepStrictEqual([other.generation, runs.count], [1, 1]);
    const again = workers.group(groupSpec({ group: "trainer_redo" }));
    strictEqual(again.holds("train", null, AGAIN), false);
    await again.ready();
    strictEqual(again.generation, 2);
  });
});
