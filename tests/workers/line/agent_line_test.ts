import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { webSocketLine } from "../../../workers/mod.ts";
import { gate, withHome } from "../fixtures.ts";
import { HELLO, withHub } from "./hub_visit.ts";

const IGNORE = { open: () => {}, frame: () => {}, closed: () => {} };

Deno.test("webSocketLine() has no hub before an engine announced itself", () =>
  withHome((home) => {
    strictEqual(webSocketLine(`${home}/hub.json`).hub(), null);
    return Promise.resolve();
  }));

Deno.test("webSocketLine() reaches the engine of the hub's file with its token", () =>
  withHub(async (hub) => {
    hub.expect("a");
    const line = webSocketLine(hub.file);
    const welcomed = Promise.withResolvers<string>();
    const found = line.hub()!;
    strictEqual(found.url, hub.url);
    const socket = line.connect(found, {
      ...IGNORE,
      open: () => socket.send(JSON.stringify(HELLO)),
      frame: (text) => welcomed.resolve(JSON.parse(text).type),
    });
    deepStrictEqual([await welcomed.promise, socket.isOpen], ["welcome", true]);
    socket.terminate();
  }));

Deno.test("webSocketLine() closes, and throws nothing, if the token is wrong", () =>
  withHub(async (hub) => {
    const closed = gate();
    const line = webSocketLine(hub.file);
    const socket = line.connect({ ...line.hub()!, token: "wrong" }, {
      ...IGNORE,
      closed: closed.open,
    });
    await closed.opened;
    strictEqual(socket.isOpen, false);
  }));

Deno.test("webSocketLine(): terminate() cuts the line", () =>
  withHub(async (hub) => {
    hub.expect("a");
    const [opened, closed] = [gate(), gate()];
    const line = webSocketLine(hub.file);
    const socket = line.connect(line.hub()!, {
      ...IGNORE,
      open: opened.open,
      closed: closed.open,
    });
    await opened.opened;
    socket.terminate();
    await closed.opened;
    strictEqual(socket.isOpen, false);
  }));
