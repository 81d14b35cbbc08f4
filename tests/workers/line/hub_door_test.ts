import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { InvalidInputError } from "../../../engine/mod.ts";
import { Hub } from "../../../workers/mod.ts";
import { LIMITS } from "../../../workers/line/limits.ts";
import { readHubFile } from "../../../workers/line/hub_door.ts";
import { withHome } from "../fixtures.ts";
import { bearer, HELLO, visit, withHub } from "./hub_visit.ts";

Deno.test("Hub answers 401 before the upgrade without the run's token", () =>
  withHub(async (hub) => {
    deepStrictEqual(await visit(hub.url, {}), { status: 401 });
    deepStrictEqual(await visit(hub.url, { headers: { Authorization: "Bearer wrong" } }), {
      status: 401,
    });
    deepStrictEqual(await visit(hub.url, { headers: { Authorization: `Bearer ${hub.token}x` } }), {
      status: 401,
    });
  }));

Deno.test("Hub survives a refused client that cuts the connection", () =>
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
        const socket = connect(Number(port), hostname).on("close", () => resolve()).on(
          "error",
          () => {},
        );
        socket.write(
          ["GET /agent HTTP/1.1", `Host: ${host}`, ...upgrade, "", ""].join("\r\n"),
          () => {
            socket.resetAndDestroy();
          },
        );
      });
      deepStrictEqual(await visit(hub.url, {}), { status: 401 });
    }
  }));

Deno.test("Hub answers 403 to a browser's Origin or a foreign Host, 404 to other paths", () =>
  withHub(async (hub) => {
    deepStrictEqual(await visit(hub.url, bearer(hub, { Origin: "http://evil.example" })), {
      status: 403,
    });
    deepStrictEqual(await visit(hub.url, bearer(hub, { Host: "evil.example" })), { status: 403 });
    deepStrictEqual(await visit(hub.url.replace("/agent", "/other"), bearer(hub)), { status: 404 });
  }));

Deno.test("Hub drops a socket whose frame is larger than any message, and tells the link", () =>
  withHub(async (hub) => {
    const violations: [string, boolean][] = [];
    hub.expect("a").onViolation = (...violation) => violations.push(violation);
    const too_large = new Uint8Array(LIMITS.message_bytes_max + 1);
    for (const engine_boot of [null, hub.engineBoot, hub.engineBoot]) {
      const outcome = await visit(hub.url, bearer(hub), [
        JSON.stringify({ ...HELLO, engine_boot }),
        too_large,
      ]);
      ok("closed" in outcome);
      ok([1006, 1009].includes(outcome.closed), String(outcome.closed));
    }
    const reason = "Max payload size exceeded";
    deepStrictEqual(violations, [[reason, false], [reason, false], [reason, true]]);
  }));

Deno.test("Hub.start() writes hub.json for its owner alone, and close() removes it", () =>
  withHome(async (home) => {
    const file = join(home, "hub.json");
    const hub = await Hub.start({ run: "r", epoch: 7, file });
    const { url, token, engineBoot: engine_boot } = hub;
    deepStrictEqual(JSON.parse(await Deno.readTextFile(file)), {
      url,
      token,
      engine_boot,
      epoch: 7,
    });
    strictEqual((await Deno.stat(file)).mode! & 0o777, 0o600);
    await hub.close();
    await rejects(Deno.stat(file), Deno.errors.NotFound);
  }));

Deno.test("Hub.start() on a port in use says so and how to fix it", () =>
  withHome(async (home) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await rejects(
      Hub.start({ run: "r", epoch: 1, file: join(home, "hub.json"), port }),
      (error: Error) =>
        error instanceof InvalidInputError &&
        error.message.includes(`127.0.0.1:${port} because the port is in use`),
    );
    await new Promise((resolve) => other.close(resolve));
  }));

Deno.test("readHubFile() is null for a file that is missing, torn or malformed", () =>
  withHome(async (home) => {
    const file = join(home, "hub.json");
    const whole = { url: "ws://h:1/agent", token: "t", engine_boot: "b", epoch: 0 };
    strictEqual(readHubFile(file), null);
    for (const text of ["", '{"url":', JSON.stringify({ ...whole, epoch: -1 })]) {
      await Deno.writeTextFile(file, text);
      strictEqual(readHubFile(file), null);
    }
    await Deno.writeTextFile(file, JSON.stringify({ ...whole, later: 1 }));
    deepStrictEqual(readHubFile(file), whole);
  }));
