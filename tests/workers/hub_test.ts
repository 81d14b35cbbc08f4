import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
// @ts-types="@types/ws"
import { type ClientOptions, WebSocket } from "ws";
import { InvalidInputError, ManualClock } from "../../engine/mod.ts";
import { Hub } from "../../workers/mod.ts";
import { LIMITS } from "../../workers/limits.ts";
import { PROTOCOL_VERSION } from "../../workers/protocol.ts";
import { withHome } from "./fixtures.ts";

type Outcome = { status: number } | { closed: number; messages: Record<string, unknown>[] };

const HELLO = {
  type: "hello",
  protocol: PROTOCOL_VERSION,
  agent_id: "a",
  boot_id: "boot",
  engine_boot: null,
  pid: 1,
  host: "h",
  packages: {},
  groups: [],
  tasks: [],
  received_seq: 0,
};

/** Connects, sends `frames`, and says how it ended: refused with a status, or closed with a code. */
function visit(url: string, options: ClientOptions, frames: (string | Uint8Array)[] = []): Promise<Outcome> {
  return new Promise((resolve) => {
    const messages: Record<string, unknown>[] = [];
    const socket = new WebSocket(url, options);
    socket.on("unexpected-response", (_request, response) => resolve({ status: response.statusCode ?? 0 }));
    socket.on("open", () => frames.forEach((frame) => socket.send(frame)));
    socket.on("message", (data: Uint8Array) => messages.push(JSON.parse(new TextDecoder().decode(data))));
    socket.on("error", () => {});
    socket.on("close", (closed) => resolve({ closed, messages }));
  });
}

function withHub(body: (hub: Hub, clock: ManualClock) => Promise<void>): Promise<void> {
  return withHome(async (home) => {
    const clock = new ManualClock();
    const hub = await Hub.start({ run: "r", epoch: 3, file: join(home, "runs", "r", "hub.json"), clock });
    try {
      await body(hub, clock);
    } finally {
      await hub.close();
    }
  });
}

const bearer = (hub: Hub, more: Record<string, string> = {}) => ({
  headers: { Authorization: `Bearer ${hub.token}`, ...more },
});

Deno.test("Hub answers 401 before the upgrade without the run's token", () =>
  withHub(async (hub) => {
    deepStrictEqual(await visit(hub.url, {}), { status: 401 });
    deepStrictEqual(await visit(hub.url, { headers: { Authorization: "Bearer wrong" } }), { status: 401 });
    deepStrictEqual(await visit(hub.url, { headers: { Authorization: `Bearer ${hub.token}x` } }), { status: 401 });
  }));

Deno.test("Hub goes on when somebody whom it refuses cuts the connection", () =>
  withHub(async (hub) => {
    const { host, hostname, port } = new URL(hub.url);
    const upgrade = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: aaaa",
    ];
    for (let i = 0; i < 10; i++) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname).on("close", () => resolve()).on("error", () => {});
        socket.write(["GET /agent HTTP/1.1", `Host: ${host}`, ...upgrade, "", ""].join("\r\n"), () => {
          socket.resetAndDestroy();
        });
      });
      deepStrictEqual(await visit(hub.url, {}), { status: 401 });
    }
  }));

Deno.test("Hub answers 403 to a browser's Origin and to a foreign Host, 404 to another path", () =>
  withHub(async (hub) => {
    deepStrictEqual(await visit(hub.url, bearer(hub, { Origin: "http://evil.example" })), { status: 403 });
    deepStrictEqual(await visit(hub.url, bearer(hub, { Host: "evil.example" })), { status: 403 });
    deepStrictEqual(await visit(hub.url.replace("/agent", "/other"), bearer(hub)), { status: 404 });
  }));

Deno.test("Hub tells an agent of another engine's boot, and one it does not expect, to drop", () =>
  withHub(async (hub) => {
    hub.expect("a");
    for (const hello of [{ ...HELLO, engine_boot: "another" }, { ...HELLO, agent_id: "stranger" }]) {
      const outcome = await visit(hub.url, bearer(hub), [JSON.stringify(hello)]);
      ok("messages" in outcome);
      strictEqual(outcome.messages[0]!.verdict, "drop");
      strictEqual(outcome.messages[0]!.epoch, 3);
    }
  }));

Deno.test("Hub lets one boot of an agent in: another boot under its name is dropped", () =>
  withHub(async (hub) => {
    const link = hub.expect("a");
    const first = new WebSocket(hub.url, bearer(hub));
    first.on("open", () => first.send(JSON.stringify(HELLO)));
    await new Promise((resolve) => first.once("message", resolve));
    strictEqual(link.bootId, "boot");
    const outcome = await visit(hub.url, bearer(hub), [JSON.stringify({ ...HELLO, boot_id: "impostor" })]);
    ok("messages" in outcome);
    strictEqual(outcome.messages[0]!.verdict, "drop");
    first.terminate();
  }));

Deno.test("Hub closes a socket whose first frame is no hello, or of another protocol", () =>
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

Deno.test("Hub drops a socket whose frame is larger than any message, and says so to the link", () =>
  withHub(async (hub) => {
    const violations: [string, boolean][] = [];
    hub.expect("a").onViolation = (...violation) => violations.push(violation);
    const too_large = new Uint8Array(LIMITS.message_bytes_max + 1);
    for (const engine_boot of [null, hub.engineBoot, hub.engineBoot]) {
      const outcome = await visit(hub.url, bearer(hub), [JSON.stringify({ ...HELLO, engine_boot }), too_large]);
      ok("closed" in outcome);
      ok([1006, 1009].includes(outcome.closed), String(outcome.closed));
    }
    const reason = "Max payload size exceeded";
    deepStrictEqual(violations, [[reason, false], [reason, false], [reason, true]]);
  }));

Deno.test("Hub takes a hello of any number of tasks, and answers every one of them", () =>
  withHub(async (hub) => {
    hub.expect("a", { adopted: true });
    const held = { group: "g", generation: 1, key: "k".repeat(200), attempt: 1, epoch: 1, op: "o", args_hash: "h" };
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

Deno.test("Hub.start() writes hub.json for its owner alone, and close() removes it", () =>
  withHome(async (home) => {
    const file = join(home, "hub.json");
    const hub = await Hub.start({ run: "r", epoch: 7, file });
    const { url, token, engineBoot } = hub;
    deepStrictEqual(JSON.parse(await Deno.readTextFile(file)), { url, token, engine_boot: engineBoot, epoch: 7 });
    strictEqual((await Deno.stat(file)).mode! & 0o777, 0o600);
    await hub.close();
    await rejects(Deno.stat(file), Deno.errors.NotFound);
  }));

Deno.test("Hub.close() leaves another engine's hub.json alone", () =>
  withHome(async (home) => {
    const file = join(home, "hub.json");
    const hub = await Hub.start({ run: "r", epoch: 1, file });
    await Deno.writeTextFile(file, JSON.stringify({ engine_boot: "another" }));
    await hub.close();
    strictEqual(await Deno.readTextFile(file), JSON.stringify({ engine_boot: "another" }));
  }));

Deno.test("Hub.start() on a port in use says so and how to mend it", () =>
  withHome(async (home) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await rejects(
      Hub.start({ run: "r", epoch: 1, file: join(home, "hub.json"), port }),
      (error: Error) =>
        error instanceof InvalidInputError && error.message.includes(`127.0.0.1:${port} because the port is in use`),
    );
    await new Promise((resolve) => other.close(resolve));
  }));
