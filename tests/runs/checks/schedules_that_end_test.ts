import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { Optimizer } from "../../../data/mod.ts";
import { questionsOf } from "../../../runs/mod.ts";
import { type Scheduled, schedulesThatEnd } from "../../../runs/checks/schedules_that_end.ts";
import { onlineConfig } from "../../flows/fixtures.ts";

const optimizer = (schedule: object) => Optimizer.parse({ schedule });
const ends = (total_steps: number, rest: object = {}) =>
  optimizer({ name: "linear", total_steps, ...rest });
const STEPS = { updates_per_batch: 2, epochs_per_batch: 3 };

Deno.test("schedulesThatEnd() names the first round that has a step at a rate of 0", () => {
  const questions = (total: number) =>
    schedulesThatEnd({ rounds: 10, trainer: { ...STEPS, optimizer: ends(total) } });
  deepStrictEqual([questions(60), questions(61)], [[], []]);
  deepStrictEqual(questions(59), [
    "trainer.optimizer.schedule ends after 59 optimizer steps, and 10 rounds take 60: from round " +
    "10 on the learning rate is 0. Fix: trainer.optimizer.schedule.total_steps=60, or " +
    "trainer.optimizer.schedule.min_ratio=0.1",
  ]);
  match(questions(54)[0]!, /from round 10 on/);
  match(questions(53)[0]!, /from round 9 on/);
  match(questions(1)[0]!, /from round 1 on/);
});

Deno.test("schedulesThatEnd() asks nothing of a schedule that keeps a rate", () => {
  const kept = [
    ends(5, { min_ratio: 0.1 }),
    optimizer({ name: "constant", total_steps: 5 }),
    optimizer({}),
  ];
  for (const one of kept) {
    deepStrictEqual(schedulesThatEnd({ rounds: 10, trainer: { optimizer: one } }), []);
  }
});

Deno.test("schedulesThatEnd() knows the steps of every optimizer", () => {
  const all: Scheduled = {
    algorithm: { name: "ppo" } as never,
    trainer: STEPS,
    online: { rounds: 4, optimizer: ends(12) },
    warmup: { rounds: 4, optimizer: ends(3) },
    value_model: { warmup_rounds: 1, optimizer: ends(12) },
  };
  const found = schedulesThatEnd(all).map((text) =>
    /^(\w+).* take (\d+): from round (\d+)/.exec(text)
  );
  deepStrictEqual(found.map((one) => one?.slice(1)), [
    ["online", "18", "4"], // The policy does not step in the value model's first round.
    ["warmup", "4", "4"],
    ["value_model", "24", "3"],
  ]);
  strictEqual(schedulesThatEnd({ ...all, algorithm: { name: "grpo" } as never }).length, 2);
});

Deno.test("questionsOf() asks about a schedule that ends early", () => {
  const config = onlineConfig("/none", { rounds: 3, trainer: { optimizer: ends(2) } });
  match(questionsOf(config, {})[0]!, /^trainer\.optimizer\.schedule ends after 2 .*round 3 on/);
});
