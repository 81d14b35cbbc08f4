import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../../engine/mod.ts";
import type { AgentLink } from "../../../workers/line/agent_link.ts";
import { sleepAwake, watchAgent } from "../../../workers/fleet/supervision.ts";

const SILENT_MS = 5000;

/** A clock whose process is frozen once: the first sleep that falls due takes so much longer. */
class FrozenOnce extends ManualClock {
  constructor(public missed_ms: number) {
    super();
  }
  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const missed = this.missed_ms;
    this.missed_ms = 0;
    await super.sleep(ms + missed, signal);
  }
}

/** An agent that was heard last at `heard_ms`. */
function watched(clock: ManualClock) {
  const link = {
    heard_ms: 0,
    bootId: "b",
    get silentMs() {
      return clock.monotonic() - link.heard_ms;
    },
  };
  const over = new AbortController();
  const exited = new Promise<string>(() => {});
  const options = { clock, silent_ms: SILENT_MS, start_ms: SILENT_MS, exited, signal: over.signal };
  return { link, over, end: watchAgent(link as unknown as AgentLink, options) };
}

Deno.test("watchAgent(): a frozen engine reads its mail before it gives an agent up", async () => {
  const clock = new FrozenOnce(60_000);
  const { link, over, end } = watched(clock);
  // It wakes: its limit is long past, the agent's frames are not read yet.
  await clock.advance(65_000);
  link.heard_ms = clock.monotonic();
  await clock.advance(4000);
  over.abort();
  strictEqual(await end, null);
});

Deno.test("watchAgent() gives a silent agent up soon after the limit", async () => {
  const clock = new ManualClock();
  const { end } = watched(clock);
  await clock.advance(SILENT_MS + 250);
  match((await end)!.reason, /silent for 5250 ms: the limit is 5000 ms/);
});

Deno.test("sleepAwake(): what a frozen process missed counts as a moment", async () => {
  const clock = new FrozenOnce(60_000);
  const woken: number[] = [];
  sleepAwake(clock, 1000, new AbortController().signal).then(() => woken.push(clock.monotonic()));
  await clock.advance(60_250);
  deepStrictEqual(woken, []);
  await clock.advance(750);
  deepStrictEqual(woken, [61_000]);
});
