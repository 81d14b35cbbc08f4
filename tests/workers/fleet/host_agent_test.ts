import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { FencedError } from "../../../engine/mod.ts";
import type { HubDoor } from "../../../workers/mod.ts";
import { gate, groupSpec } from "../fixtures.ts";
import { AGAIN, counted, FIRST, withEngines } from "./following_engines.ts";

Deno.test("HostAgent replaces an agent that does not connect in time", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    agents[0]!.follow = () => {}; // It hangs.
    const { workers } = await engine({ adopt_ms: 10 });
    deepStrictEqual((await workers.group(groupSpec()).call("train", null, AGAIN)).generation, 1);
    deepStrictEqual(agents.map(({ alive }) => alive), [false, true]);
  });
});

Deno.test("HostAgent reports a hub that cannot be announced, and no later error", async () => {
  await withEngines({ operations: {} }, async ({ engine, agents }) => {
    await engine();
    const door: HubDoor = {
      open: () => Promise.resolve("ws://127.0.0.1:1/agent"),
      announce: () => Promise.reject(new Error("No space left on device")),
      announced: () => null,
      withdraw: () => Promise.resolve(),
      terminate: () => {},
      close: () => Promise.resolve(),
    };
    const secondAsk = gate();
    let asks = 0;
    const owns = () => {
      asks += 1;
      if (asks === 2) secondAsk.open();
      return Promise.resolve(asks === 1);
    };
    await rejects(engine({ door, owns }), /No space left on device/);
    agents[0]!.exit();
    await secondAsk.opened; // The adoption fails: unhandled, it would end the whole test run.
  });
});

Deno.test("HostAgent leaves its agent if the run's owner is unknown", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    let there = true;
    const owns = () =>
      there ? Promise.resolve(true) : Promise.reject(new Error("no route to the store"));
    const { workers } = await engine({ owns, owns_retry_ms: 1 });
    await workers.group(groupSpec()).call("train", null, FIRST);
    there = false;
    await workers.stop();
    strictEqual(agents[0]!.alive, true);
    agents[0]!.exit();
  });
});

Deno.test("HostAgent releases the answers of a recorded stage", async () => {
  const { script, finish, runs } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const { workers } = await engine({ isRecorded: (key) => Promise.resolve(key === "k") });
    await workers.group(groupSpec()).call("train", null, AGAIN);
    deepStrictEqual([runs.count, agents[0]!.received.some(({ type }) => type === "release")], [
      2,
      true,
    ]);
  });
});

Deno.test("HostAgent: an engine that was superseded starts, ends and writes nothing", async () => {
  const { script, started } = counted();
  await withEngines(script, async ({ engine, agents, home }) => {
    const first = await engine();
    const group = first.workers.group(groupSpec());
    const call = rejects(group.call("train", null, FIRST), FencedError);
    await started.opened;
    const second = await engine();
    await second.workers.group(groupSpec()).ready();
    const hub = () => Deno.readTextFile(`${home}/runs/run/hub.json`);
    const heard = () => agents[0]!.received.filter(({ epoch }) => epoch === 1).length;
    const before = [await hub(), heard()];
    await first.workers.stop();
    await call;
    await rejects(first.workers.group(groupSpec({ group: "late" })).ready(), FencedError);
    deepStrictEqual([await hub(), heard()], before);
    deepStrictEqual([agents.length, agents[0]!.alive], [1, true]);
    ok(first.events.all.some(({ type }) => type === "fenced"));
  });
});
