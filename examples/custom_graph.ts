/** Two rewards, a filter and a promotion gate: `deno run -A examples/custom_graph.ts`. Kill it, run it again: it continues. */
import * as rl from "holdfast";

const Scored = rl.z.array(rl.ScoredGroup);
/** The filter: a group whose samples all scored alike teaches nothing. The ledger counts what it drops. */
const keepMixed = rl.defineStage({ name: "keep_mixed", version: 1, input: Scored, output: Scored, run: mixed });
function mixed(groups: rl.ScoredGroup[], ctx: rl.Context) {
  const kept = groups.filter(({ failed, rewards }) => failed !== null || new Set(rewards).size > 1);
  ctx.tally({ "filtered.all_alike": groups.length - kept.length });
  return kept;
}
const Held = rl.z.strictObject({ champion: rl.Policy, best: rl.z.number() });
const Contest = Held.extend({ policy: rl.Policy, now: rl.Evaluation });
/** The gate: a policy becomes the champion only if its evaluation beats the best so far. */
const promote = rl.defineStage({ name: "promote", version: 1, input: Contest, output: Held, run: beats });
function beats({ policy, now, ...held }: rl.z.infer<typeof Contest>) {
  return now.mean_reward > held.best ? { champion: policy, best: now.mean_reward } : held;
}
const Config = rl.OnlineConfig.omit({ flow: true, data: true }).extend({ model: rl.RecipeConfig, task: rl.DigitsTask });
export const gated = rl.graph("gated", Config, (g, config) => {
  const [data, model] = [g.stage(rl.openData, { split: "train" }), g.stage(rl.createModel, config.model)];
  const start = g.stage(rl.preparePolicy, { model_path: model.field("path"), optimizer: config.trainer.optimizer });
  const carry = { policy: start, champion: start, best: g.constant(0) };
  const last = g.loop("round", { times: config.rounds, carry, audit: rl.checkLedger }, (r) => {
    const scored = rl.scoredRollouts(r, config, { data, round: r.index, policy: r.carried("policy") });
    const kept = r.stage(keepMixed, scored);
    const policy = rl.trainedOn(r, config, { scored: kept, policy: r.carried("policy"), reference: start });
    const [now] = rl.evaluations(r, { ...config, label: "gate" }, policy);
    const held = r.stage(promote, { policy, now: now!, champion: r.carried("champion"), best: r.carried("best") });
    return { policy, champion: held.field("champion"), best: held.field("best") };
  });
  return { best: last.best, model: g.stage(rl.exportPolicy, { policy: last.champion, name: "champion" }).field("dir") };
});

const reward = [{ name: "exact_match" as const }, { name: "characters_in_place" as const, weight: 0.1 }];
const sizes = { rounds: 4, prompts_per_round: 8, samples_per_prompt: 8, sampler: { tokens_max: 8 } };
const how = { trainer: { optimizer: { lr: 4e-4 } }, algorithm: { name: "grpo" as const }, reward, model: {}, task: {} };
const config = { ...sizes, ...how, evaluate: { problems: 16, samples_per_prompt: 4, greedy: false } };
const options = { config, home: Deno.args[0] ?? ".holdfast", id: "gated", entry: `${import.meta.url}#gated` };
if (import.meta.main) console.log(await rl.runGraph(gated, options));
