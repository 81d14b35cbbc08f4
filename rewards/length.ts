import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineReward, type Reward } from "./define.ts";

/** @internal */
type Reads = { completion: string; tokens: number };
const /** @internal */ config = z.strictObject({
  unit: z.enum(["characters", "tokens"]).default("characters").describe("What to count."),
  max: z.int().positive().default(2000).describe("The length from which the score stays constant.")
    .register(setting, { unit: "characters or tokens" }),
  prefer: z.enum(["short", "long"]).default("short").describe(
    "Whether short or long completions score 1.",
  ),
});

/**
 * How long the completion is, from 0 to 1: its length as a share of `max`, or 1 minus it.
 * Characters are Unicode code points, as Python counts them.
 * @example
 * ```ts
 * strictEqual(length.score({ completion: "abcde", tokens: 2 }, { unit: "characters", max: 20, prefer: "short" }), 0.75);
 * ```
 */
export const length: Reward<"length", typeof config.shape, Reads> = defineReward({
  name: "length",
  about: "The completion's length, from 0 to 1.",
  runs_on: "engine",
  kept: null,
  right_at: null,
  config,
  score({ completion, tokens }: Reads, { unit, max, prefer }) {
    const count = unit === "tokens" ? tokens : [...completion].length;
    const share = Math.min(count, max) / max;
    return prefer === "long" ? share : 1 - share;
  },
});
