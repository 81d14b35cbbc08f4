import { ok, strictEqual } from "node:assert/strict";
import { RewardStyle } from "../../data/mod.ts";
import { RewardConfig } from "../../rewards/mod.ts";

const ROOT = new URL("../../", import.meta.url);

Deno.test("RewardStyle has what the page on rewards and the decision have", async () => {
  const page = await Deno.readTextFile(new URL("docs/rewards.md", ROOT));
  const decision = await Deno.readTextFile(
    new URL("docs/decisions/0043-styles-of-rewards.md", ROOT),
  );
  for (const style of RewardStyle.options) {
    ok(page.includes(`| \`${style}\` | `), style);
    if (style !== "holdfast") ok(decision.includes(`| \`${style}\` | `), style);
  }
});

Deno.test("RewardStyle is a setting of a Python reward, recorded only if it is named", () => {
  const reward = { name: "python", source: "/a.py:f", timeout_ms: 10_000 };
  for (const style of RewardStyle.options) {
    strictEqual((RewardConfig.parse({ ...reward, style }) as { style?: string }).style, style);
  }
  strictEqual(RewardConfig.safeParse({ ...reward, style: "tlr" }).success, false);
  strictEqual("style" in RewardConfig.parse(reward), false);
});
