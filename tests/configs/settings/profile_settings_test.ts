import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { profileOf } from "../../../algs/mod.ts";
import { withProfile } from "../../../configs/settings/profile_settings.ts";

const { settings } = profileOf("trl", "grpo")!;

Deno.test("withProfile() fills in what is not written", () => {
  const { value, profile } = withProfile({ algorithm: { name: "grpo", profile: "trl" } });
  deepStrictEqual(value, { algorithm: { name: "grpo", profile: "trl", ...settings } });
  deepStrictEqual([profile!.set, profile!.written], [settings, {}]);
});

Deno.test("withProfile() keeps what is written, and says where it differs", () => {
  const [[key, profileValue]] = Object.entries(settings) as [[string, unknown]];
  const other = { name: "grpo", profile: "trl", [key]: "mine" };
  const { value, profile } = withProfile({ algorithm: other });
  strictEqual((value as { algorithm: Record<string, unknown> }).algorithm[key], "mine");
  deepStrictEqual(profile!.written, { [key]: profileValue });
  const same = withProfile({ algorithm: { ...other, [key]: profileValue } });
  deepStrictEqual(same.profile!.written, {});
});

Deno.test("withProfile() leaves a value without a known profile as it is", () => {
  for (
    const value of [
      null,
      { algorithm: "grpo" },
      { algorithm: { name: "grpo" } },
      { algorithm: { name: "grpo", profile: "unheard_of" } },
      { algorithm: { name: "grpo", profile: 3 } },
    ]
  ) {
    deepStrictEqual(withProfile(value), { value, profile: null });
  }
});
