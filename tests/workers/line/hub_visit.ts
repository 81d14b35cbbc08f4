import { join } from "node:path";
// @ts-types="@types/ws"
import { type ClientOptions, WebSocket } from "ws";
import { ManualClock } from "../../../engine/mod.ts";
import { Hub } from "../../../workers/mod.ts";
import { PROTOCOL_VERSION } from "../../../workers/line/protocol.ts";
import { withHome } from "../fixtures.ts";

type Outcome = { status: number } | { closed: number; messages: Record<string, unknown>[] };

export const HELLO = {
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

/**
 * Connects, sends `frames`, and says how it ended: refused with a status, or closed with a code.
 */
export function visit(
  url: string,
  options: ClientOptions,
  frames: (string | Uint8Array)[] = [],
): Promise<Outcome> {
  return new Promise((resolve) => {
    const messages: Record<string, unknown>[] = [];
    const socket = new WebSocket(url, options);
    socket.on(
      "unexpected-response",
      (_request, response) => resolve({ status: response.statusCode ?? 0 }),
    );
    socket.on("open", () => frames.forEach((frame) => socket.send(frame)));
    socket.on(
      "message",
      (data: Uint8Array) => messages.push(JSON.parse(new TextDecoder().decode(data))),
    );
    socket.on("error", () => {});
    socket.on("close", (closed) => resolve({ closed, messages }));
  });
}

export function withHub(body: (hub: Hub, clock: ManualClock) => Promise<void>): Promise<void> {
  return withHome(async (home) => {
    const clock = new ManualClock();
    const hub = await Hub.start({
      run: "r",
      epoch: 3,
      file: join(home, "runs", "r", "hub.json"),
      clock,
    });
    try {
      await body(hub, clock);
    } finally {
      await hub.close();
    }
  });
}

export const bearer = (hub: Hub, more: Record<string, string> = {}) => ({
  headers: { Authorization: `Bearer ${hub.token}`, ...more },
});
