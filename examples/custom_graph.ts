/** Two rewards, a filter and a promotion gate. Kill it, run it again: it continues. */
import * as rl from "holdfast";

const io = { input: rl.z.array(rl.ScoredGroup), output: rl.z.array(rl.ScoredGroup) };
/** The filter: a group whose samples all scored alike teaches nothing. The ledger counts it. */
const keepMixed = rl.defineStage({ name: "keep_mixed", version: 1, ...io, run: mixed });
function mixed(groups: rl.ScoredGroup[], ctx: rl.Context) {
  const kept = groups.filter((one) => one.failed !== null || new Set(one.rewards).size > 1);
  ctx.tally({ "filtered.all_alike": groups.length - kept.length });
  return kept;
}
const Held = rl.z.strictObject({ champion: rl.Policy, best: rl.z.number() });
const Duel = Held.extend({ policy: rl.Policy, now: rl.Evaluation });
/** The gate: a policy becomes the champion only if its evaluation beats the best so far. */
const gate = rl.defineStage({ name: "promote", version: 1, input: Duel, output: Held, run: won });
function won({ policy, now, ...held }: rl.z.infer<typeof Duel>) {
  return now.mean_reward > held.best ? { champion: policy, best: now.mean_reward } : held;
}
const blocks = { model: rl.RecipeConfig, task: rl.DigitsTask };
const Config = rl.OnlineConfig.omit({ flow: true, data: true }).extend(blocks);
export const gated = rl.graph("gated", Config, (g, c) => {
  const data = g.stage(rl.openData, { split: "train" });
  const model_path = g.stage(rl.createModel, c.model).field("path");
  const base = g.stage(rl.preparePolicy, { model_path, optimizer: c.trainer.optimizer });
  const carry = { policy: base, champion: base, best: g.constant(0) };
  const last = g.loop("round", { times: c.rounds, carry, audit: rl.checkLedger }, (r) => {
    const [policy, champion] = [r.carried("policy"), r.carried("champion")];
    const all = rl.scoredRollouts(r, c, { data, round: r.index, policy });
    const scored = r.stage(keepMixed, all);
    const next = rl.trainedOn(r, c, { scored, policy, reference: base });
    const now = rl.evaluations(r, { ...c, label: "gate" }, next)[0]!;
    const held = r.stage(gate, { policy: next, now, champion, best: r.carried("best") });
    return { policy: next, champion: held.field("champion"), best: held.field("best") };
  });
  const end = g.stage(rl.exportPolicy, { policy: last.champion, name: "champion" });
  return { best: last.best, model: end.field("dir") };
});
const form = { name: "characters_in_place" as const, weight: 0.1 };
const algorithm = { name: "grpo" as const };
const how = { algorithm, reward: [{ name: "exact_match" as const }, form], model: {}, task: {} };
const sizes = { rounds: 4, prompts_per_round: 8, samples_per_prompt: 8 };
const evaluate = { problems: 16, samples_per_prompt: 4, greedy: false };
const [sampler, trainer] = [{ tokens_max: 8 }, { optimizer: { lr: 4e-4 } }];
const config = { ...how, ...sizes, sampler, evaluate, trainer };
const [home, entry] = [Deno.args[0] ?? ".holdfast", `${import.meta.url}#gated`];
if (import.meta.main) console.log(await rl.runGraph(gated, { config, home, id: "gated", entry }));
