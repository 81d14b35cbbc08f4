import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { readWorkerStates } from "../../workers/fleet/worker_states.ts";
import { endAll, freshHome, json, rl, SMALL, start } from "../cli/fixtures.ts";
import { orphans } from "../crash/runs.ts";
import { safetensorsDigest } from "./safetensors_digest.ts";

type Model = { version: string; number: number; digest: string };
type Shown = {
  status: string;
  policy: Model;
  critic: Model;
  ledger: unknown;
  workers: { role: string; group: string; state: string }[];
  recoveries: { group?: string; cause: string; batches_redone: number }[];
  metrics: Record<string, number>;
};

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
/**
 * Three rounds, of which the first only warms the value model up; two passes over each batch, and
 * no checkpoint before the end.
 */
const PPO = [
  "algorithm=ppo",
  "warmup.rounds=1",
  "online.rounds=3",
  "evaluate.problems=4",
  "checkpoints.every_rounds=3",
  "trainer.epochs_per_batch=2",
  "value_model.optimizer.lr=1e-3",
  "value_model.warmup_rounds=1",
];
const shown = (id: string) => json<Shown>(["show", id, ...at]);

const calm = await rl(["run", SMALL, ...PPO, ...at, "--id", "calm"]);
const undisturbed = calm.code === 0 ? await shown("calm") : null;

Deno.test("ppo: policy and value model are trained by two groups, and both end as directories with the shown digests", async () => {
  strictEqual(calm.code, 0, calm.err);
  const { policy, critic, metrics } = undisturbed!;
  deepStrictEqual([policy.number, critic.number], [2, 3]);
  strictEqual(await safetensorsDigest(`${home}/runs/calm/final`), policy.digest);
  strictEqual(await safetensorsDigest(`${home}/runs/calm/final_critic`), critic.digest);
  const config = JSON.parse(await Deno.readTextFile(`${home}/runs/calm/final_critic/config.json`));
  deepStrictEqual(config.architectures, ["Qwen2ForTokenClassification"]);
  for (const name of ["value/loss", "value/explained_variance", "optim/value_grad_norm"]) {
    ok(Number.isFinite(metrics[name]), name);
  }
});

Deno.test("ppo: killed in its second round and resumed, it ends with the same policy and the same value model", async () => {
  // Nobody adopts the workers: what they held is redone, of each chain from its base.
  const running = start(["run", SMALL, ...PPO, "workers.grace_s=1", ...at, "--id", "killed"]);
  await running.says("round 1/3");
  running.kill("SIGSTOP"); // Rounds are short: the run must not end while it is looked at.
  const { workers } = await shown("killed");
  deepStrictEqual(workers.map(({ role, group }) => `${role} ${group}`).toSorted(), [
    "sampler sampler/0",
    "trainer critic",
    "trainer trainer",
  ]);
  running.kill("SIGKILL");
  await running.ended;
  strictEqual(await orphans(home), 0);
  const resumed = await rl(["resume", "killed", ...at]);
  strictEqual(resumed.code, 0, resumed.err);
  const { status, policy, critic, ledger, recoveries } = await shown("killed");
  deepStrictEqual({ status, policy, critic, ledger }, {
    status: "done",
    policy: undisturbed!.policy,
    critic: undisturbed!.critic,
    ledger: undisturbed!.ledger,
  });
  const redone = recoveries.filter(({ group }) => group === "critic").map(({ batches_redone }) =>
    batches_redone
  );
  ok(redone.some((batches) => batches > 0), JSON.stringify(recoveries));
});

Deno.test("ppo: the value model's group killed in the middle costs its redo, and no bit", async () => {
  const running = start(["run", SMALL, ...PPO, ...at, "--id", "lost"]);
  await running.says("round 1/3");
  // Rounds are short: frozen, the engine cannot end the run before the group is gone.
  running.kill("SIGSTOP");
  Deno.kill(
    readWorkerStates(home, "lost").find(({ group }) => group === "critic")!.pid!,
    "SIGKILL",
  );
  running.kill("SIGCONT");
  const ended = await running.ended;
  strictEqual(ended.code, 0, ended.err);
  match(ended.err, /^critic rank 0 died \(SIGKILL\): generation 2 starts$/m);
  const { policy, critic, ledger } = await shown("lost");
  deepStrictEqual([policy, critic, ledger], [
    undisturbed!.policy,
    undisturbed!.critic,
    undisturbed!.ledger,
  ]);
});

Deno.test("ppo: loss try runs its own credit and loss on a recorded round, the value of what was cut included", async () => {
  const tried = await rl(["loss", "try", "ppo", "--batch", "calm/3", ...at, "--json"]);
  strictEqual(tried.code, 0, tried.err);
  const wrong = await rl(["loss", "try", "ppo", "--batch", "calm/9", ...at]);
  deepStrictEqual([wrong.code, /it has recorded no such round/.test(wrong.err)], [2, true]);
});

Deno.test("ppo: verify redoes both chains on workers of its own and finds what was recorded", async () => {
  const verified = await json<{ equal: boolean; versions: { group?: string; digest: string }[] }>(
    ["verify", "calm", ...at],
  );
  ok(verified.equal);
  const last = (group?: string) => verified.versions.findLast((one) => one.group === group)!;
  deepStrictEqual([last().digest, last("critic").digest], ["equal", "equal"]);
});
