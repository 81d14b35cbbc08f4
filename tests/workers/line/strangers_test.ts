import { ok, strictEqual } from "node:assert/strict";
import { join } from "node:path";
// @ts-types="@types/ws"
import { WebSocket } from "ws";
import { ManualClock } from "../../../engine/mod.ts";
import { Hub } from "../../../workers/mod.ts";
import { STRANGER_MS, STRANGERS_MAX } from "../../../workers/line/strangers.ts";
import { withHome } from "../fixtures.ts";

const CROWD = 400;

/** Sockets that this process has open. */
function descriptors(): number {
  const links = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => {
    try {
      return Deno.readLinkSync(`/proc/self/fd/${name}`);
    } catch {
      return ""; // The directory's own, which is closed again.
    }
  });
  return links.filter((link) => link.startsWith("socket:")).length;
}

/** Settles when the hub has let it in. */
async function admitted(hub: Hub): Promise<WebSocket> {
  const socket = new WebSocket(hub.url, { headers: { Authorization: `Bearer ${hub.token}` } });
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  return socket;
}

Deno.test("a crowd without the token holds few sockets and keeps no agent out", () =>
  withHome(async (home) => {
    const clock = new ManualClock();
    const hub = await Hub.start({ run: "r", epoch: 1, file: join(home, "hub.json"), clock });
    const before = descriptors();
    const script = new URL("./crowd.ts", import.meta.url).pathname;
    const args = ["run", "-A", "--quiet", "--no-check", script, new URL(hub.url).port, `${CROWD}`];
    const crowd = new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "piped" })
      .spawn();
    const reader = crowd.stdout.pipeThrough(new TextDecoderStream()).getReader();
    try {
      strictEqual((await reader.read()).value, "here\n");
      // Sockets are taken in the order they came: the crowd was before.
      const agent = await admitted(hub);
      const held = descriptors() - before;
      // Two more: both ends of the agent's.
      ok(held <= STRANGERS_MAX + 2, `${held} sockets are held for ${CROWD} strangers`);
      await clock.advance(STRANGER_MS);
      strictEqual((await reader.read()).value, "gone\n");
      strictEqual(descriptors() - before, 2);
      strictEqual(agent.readyState, WebSocket.OPEN);
      agent.terminate();
    } finally {
      crowd.kill("SIGKILL");
      await crowd.status;
      await reader.cancel();
      await hub.close();
    }
  }));
