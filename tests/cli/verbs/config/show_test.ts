import { match, strictEqual } from "node:assert/strict";
import { endAll, json, rl, SMALL } from "../../fixtures.ts";

Deno.test.afterAll(endAll);

Deno.test("config show prints the resolved settings, --origin their places", async () => {
  const { out } = await rl(["config", "show", SMALL, "--origin", "online.rounds=9"]);
  match(out, /\nonline\.rounds +9 +override online\.rounds\n/);
  match(out, /\nonline\.prompts_per_round +8 +.*quickstart_small\.yaml:\d+:\d+\n/);
  match(out, /\nworkers\.grace_s +30 +default\n/);
  const { online } = await json<{ online: { rounds: number } }>([
    "config",
    "show",
    SMALL,
    "online.rounds=9",
  ]);
  strictEqual(online.rounds, 9);
});
