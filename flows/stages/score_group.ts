import { z } from "zod";
import { ArtifactRef, encodeColumn, GroupRef, StopReason } from "../../data/mod.ts";
import { defineStage, type RecordingContext, type Stage } from "../../engine/mod.ts";
import { RewardConfig, RewardShaping, rightOfAll, scoringFunctions } from "../../rewards/mod.ts";
import { UNGRADED } from "../../rollouts/mod.ts";
import { Rewards } from "../resources.ts";
import { decodedSlab } from "./decoded_slabs.ts";
import { GeneratedGroup } from "./generate_slab.ts";

const /** @internal */ scoredGroupSchema = z.strictObject({
  id: z.string(),
  group: GroupRef,
  sampled_at: GeneratedGroup.shape.sampled_at,
  sampled_by: GeneratedGroup.shape.sampled_by,
  rewards: z.array(z.number()).describe("[G] in the order of group.samples."),
  parts: z.record(z.string(), z.array(z.number().nullable())).describe(
    "[G] each reward function's score, unweighted; null: it does not apply to the sample.",
  ),
  lengths: z.array(z.int()).describe("[G] sampled tokens."),
  stops: z.array(StopReason).describe("[G]"),
  token_rewards: z.literal(true).optional().describe(
    "Whether an environment rewarded tokens; absent: it did not.",
  ),
  token_scores: ArtifactRef.optional().describe(
    "A column with what reward functions gave each token, over whole trajectories; absent: none.",
  ),
  failures: z.record(z.string(), z.int()).optional().describe(
    "Samples without a score, by reason; absent: none.",
  ),
  failed: z.string().nullable(),
  detail: z.string().nullable(),
});
/**
 * A group with one reward per remaining sample. `failed`: why the whole group was dropped; `detail`
 * says more.
 */
export type ScoredGroup = z.infer<typeof scoredGroupSchema>;
/** Schema of {@linkcode ScoredGroup}. */
export const ScoredGroup: typeof scoredGroupSchema = scoredGroupSchema;

function countsOf(reasons: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

/**
 * Every reward, and the numbers that it returned for all samples that it applies to: others have no
 * mean over the group.
 */
function partNames(rewards: string[], parts: Record<string, number>[]): string[] {
  if (parts.length === 0) return [];
  const names = new Set([...parts.flatMap((one) => Object.keys(one)), ...rewards]);
  return [...names].filter((name) => {
    const [reward] = name.split("/");
    return name === reward || parts.every((one) => name in one || !(reward! in one));
  });
}

/** The version that sampled these groups; the newest one if a round has leftover groups. */
export function sampledBy(groups: readonly ScoredGroup[]): string | undefined {
  return groups.toSorted((a, b) => a.sampled_at - b.sampled_at).at(-1)?.sampled_by;
}

const Input = z.strictObject({
  item: GeneratedGroup,
  rewards: z.array(RewardConfig).min(1),
  on_failed_sample: z.enum(["drop_group", "drop_sample"]),
  shaping: RewardShaping.optional().describe("Absent: the sum is the reward."),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Scores every trajectory of one group. Reads one artifact and writes at most one, named by its
 * content: safe to run twice.
 */
export const scoreGroup: Stage<Input, ScoredGroup> = defineStage({
  name: "score_group",
  version: 1,
  input: Input,
  output: ScoredGroup,
  phase: "generation",
  eager: true,
  failed: ({ detail }) => detail !== null,
  async run({ item, rewards, on_failed_sample, shaping }, ctx: RecordingContext) {
    const slabGroup = (await decodedSlab(item.group.slab, ctx.artifacts)).groups[item.group.index]!;
    const trajectories = item.group.samples.map((sample) => slabGroup.trajectories[sample]!);
    const functions = scoringFunctions(rewards);
    // User code sees it.
    if (functions.some(({ runs_on }) => runs_on === "process")) await ctx.durable();
    const work = { functions, prompt: slabGroup.prompt_text, row: item.row, trajectories, shaping };
    const scores = await ctx.resource(Rewards).score(work, ctx);
    const kept = scores.flatMap((score, i) => (score.failed === null ? [i] : []));
    const unscored = scores.filter(({ failed }) => failed !== null);
    const failure = unscored.find(({ failed }) => failed !== UNGRADED) ?? unscored[0] ?? null;
    const whole = on_failed_sample === "drop_group" ? failure === null : kept.length > 0;
    const parts = rightOfAll(kept.map((i) => scores[i]!.parts));
    const names = partNames(functions.map(({ name }) => name), parts);
    const rows = kept.map((i) => {
      const { tokens, action_mask } = trajectories[i]!;
      const row = new Float32Array(tokens.length);
      row.set(scores[i]!.token_rewards ?? [], Math.max(action_mask.indexOf(1), 0));
      return row;
    });
    const earned = kept.some((i) => scores[i]!.token_rewards);
    return {
      id: item.id,
      sampled_at: item.sampled_at,
      sampled_by: item.sampled_by,
      group: { ...item.group, samples: kept.map((i) => item.group.samples[i]!) },
      rewards: kept.map((i) => scores[i]!.reward!),
      parts: Object.fromEntries(
        names.map((name) => [name, parts.map((one) => one[name] ?? null)]),
      ),
      lengths: kept.map((i) => trajectories[i]!.action_mask.reduce((sum, bit) => sum + bit, 0)),
      stops: kept.map((i) => trajectories[i]!.stop),
      token_rewards: trajectories.some((one) => one.token_rewards) ? true as const : undefined,
      token_scores: earned ? await ctx.artifacts.put(encodeColumn(rows)) : undefined,
      failures: failure ? countsOf(scores.flatMap(({ failed }) => failed ?? [])) : undefined,
      failed: whole ? null : failure!.failed,
      detail: failure?.detail ?? null,
    };
  },
});
