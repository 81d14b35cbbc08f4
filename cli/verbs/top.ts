import { type Clock, systemClock } from "../../engine/mod.ts";
import { livePart } from "../display/live_part.ts";
import { outputScreen, print, printJson, type Screen } from "../display/output.ts";
import { topScreen, topText } from "../display/top_text.ts";
import { interruptible } from "../interruptible.ts";
import { flag, json } from "../options.ts";
import { defineVerb } from "../verb.ts";
import { WatchedRuns } from "../watched_runs.ts";

/** `top`: all runs that have not ended, on one screen. */
export const topVerb = defineVerb({
  name: "top",
  about: "watch all unfinished runs on one screen until Ctrl-C",
  arguments: {},
  options: {
    json,
    once: flag("print the runs once, as without a terminal"),
    all: flag("also show runs that are done, failed or cancelled"),
  },
  action: ({ flags: { json, once, all }, globals }) =>
    globals.withHome(async (home) => {
      const runs = new WatchedRuns(home, { clock: systemClock, all });
      const screen = outputScreen();
      if (json) return printJson(await runs.facts());
      if (once || !screen.tty) return print(topText(await runs.facts()));
      await interruptible((stop) => watch(runs, { screen, clock: systemClock, stop }));
    }),
});

const REFRESH_MS = 2000;

/** Draws the runs again and again until `stop`; the last picture stays. */
export async function watch(
  runs: WatchedRuns,
  { screen, clock, stop }: { screen: Screen; clock: Clock; stop: AbortSignal },
): Promise<void> {
  const part = livePart(screen);
  while (!stop.aborted) {
    part(topScreen(await runs.facts(), screen));
    await clock.sleep(REFRESH_MS, stop).catch(() => {});
  }
}
