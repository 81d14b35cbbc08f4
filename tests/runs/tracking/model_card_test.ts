import { match, strictEqual } from "node:assert/strict";
import { modelCard } from "../../../runs/tracking/model_card.ts";
import { runView } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

Deno.test("modelCard() says where a model comes from and what it reaches", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  const view = await runView(home.store, head, await home.liveFacts("a"));
  const evaluations = [{ name: "after_greedy", mean_reward: 0.5, label: "x" }];
  const card = modelCard({ ...view, evaluations }, JSON.parse(head.config));
  match(card, new RegExp(`^- Base model: ${home.dir}/model$`, "m"));
  match(card, /^- Rounds: 2$/m);
  match(card, new RegExp(`^- Policy version: ${view.policy!.version}$`, "m"));
  match(card, /^- after_greedy: mean_reward 0\.5$/m);
  match(card, /^- policy\/loss: [-\d.e]+$/m);
  strictEqual(card.includes("undefined"), false);
});
