import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { join } from "node:path";
// @ts-types="@types/ws"
import { WebSocket } from "ws";
import { Hub } from "../../../workers/mod.ts";
import { withHome } from "../fixtures.ts";
import { bearer, HELLO, visit, withHub } from "./hub_visit.ts";

Deno.test("Hub drops agents of a different engine's boot, and unexpected agents", () =>
  withHub(async (hub) => {
    hub.expect("a");
    for (
      const hello of [{ ...HELLO, engine_boot: "another" }, { ...HELLO, agent_id: "stranger" }]
    ) {
      const outcome = await visit(hub.url, bearer(hub), [JSON.stringify(hello)]);
      ok("messages" in outcome);
      strictEqual(outcome.messages[0]!.verdict, "drop");
      strictEqual(outcome.messages[0]!.epoch, 3);
    }
  }));

Deno.test("Hub admits one boot of an agent and drops a second boot of that name", () =>
  withHub(async (hub) => {
    const link = hub.expect("a");
    const first = new WebSocket(hub.url, bearer(hub));
    first.on("open", () => first.send(JSON.stringify(HELLO)));
    await new Promise((resolve) => first.once("message", resolve));
    strictEqual(link.bootId, "boot");
    const outcome = await visit(hub.url, bearer(hub), [
      JSON.stringify({ ...HELLO, boot_id: "impostor" }),
    ]);
    ok("messages" in outcome);
    strictEqual(outcome.messages[0]!.verdict, "drop");
    first.terminate();
  }));

Deno.test("Hub closes a socket whose first frame is not a hello of its protocol", () =>
  withHub(async (hub) => {
    hub.expect("a");
    const frames = [
      "{",
      new Uint8Array([1]),
      JSON.stringify({ type: "ack", received_seq: 0 }),
      JSON.stringify({ ...HELLO, protocol: 1 }),
    ];
    for (const frame of frames) {
      deepStrictEqual(await visit(hub.url, bearer(hub), [frame]), { closed: 1008, messages: [] });
    }
  }));

Deno.test("Hub closes a socket that says nothing within 10 s", () =>
  withHub(async (hub, clock) => {
    const socket = new WebSocket(hub.url, bearer(hub));
    const closed = new Promise((resolve) => socket.on("close", resolve));
    await new Promise((resolve) => socket.on("open", resolve));
    await clock.advance(10_000);
    strictEqual(await closed, 1008);
  }));

Deno.test("Hub takes a hello of any number of tasks, and answers every one of them", () =>
  withHub(async (hub) => {
    hub.expect("a", { adopted: true });
    const held = {
      group: "g",
      generation: 1,
      key: "k".repeat(200),
      attempt: 1,
      epoch: 1,
      op: "o",
      args_hash: "h",
    };
    const tasks = Array.from(
      { length: 20_000 },
      (_, i) => ({ ...held, task: `t${i}`, cancelled: false, state: "running" }),
    );
    const socket = new WebSocket(hub.url, bearer(hub));
    socket.on("open", () => socket.send(JSON.stringify({ ...HELLO, tasks })));
    const welcome = await new Promise<Uint8Array>((resolve) => socket.once("message", resolve));
    strictEqual(JSON.parse(new TextDecoder().decode(welcome)).tasks.length, tasks.length);
    socket.terminate();
  }));

Deno.test("Hub.close() keeps the hub.json of a different engine", () =>
  withHome(async (home) => {
    const file = join(home, "hub.json");
    const hub = await Hub.start({ run: "r", epoch: 1, file });
    await Deno.writeTextFile(file, JSON.stringify({ engine_boot: "another" }));
    await hub.close();
    strictEqual(await Deno.readTextFile(file), JSON.stringify({ engine_boot: "another" }));
  }));
