import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { checkClip, clipSettings } from "../../../algs/mod.ts";

const Settings = z.strictObject(clipSettings({ low: 0.1, high: 0.3 })).superRefine(checkClip);
const places = (changes: z.input<typeof Settings>) =>
  Settings.safeParse(changes).error?.issues.map(({ path }) => path[0]) ?? [];

Deno.test("clipSettings() has the algorithm's own bounds, and no dual clip", () => {
  deepStrictEqual(Settings.parse({}), { clip_low: 0.1, clip_high: 0.3, dual_clip: null });
});

Deno.test("clipSettings() keeps a ratio's lower bound in [0, 1] and its upper one above 1", () => {
  deepStrictEqual(places({ clip_low: 0, clip_high: 0 }), []);
  deepStrictEqual(places({ clip_low: 1, clip_high: 9 }), []);
  deepStrictEqual(places({ clip_low: 1.01 }), ["clip_low"]);
  deepStrictEqual(places({ clip_low: -0.01, clip_high: -0.01 }), ["clip_low", "clip_high"]);
});

Deno.test("checkClip() refuses a dual clip that the upper clip has made useless", () => {
  deepStrictEqual(places({ dual_clip: 1.31 }), []);
  const { error } = Settings.safeParse({ dual_clip: 1.3 });
  deepStrictEqual(error?.issues.map(({ path, message }) => [path[0], message]), [[
    "dual_clip",
    "overrides the ratio's clip: it must be more than 1 + clip_high (1.3)",
  ]]);
});
