import { deepStrictEqual, throws } from "node:assert/strict";
import { resumeOverrides } from "../../cli/resume_overrides.ts";
import type { InvalidInputError } from "../../engine/mod.ts";
import {
  askedReplans,
  type Replan,
  replanned,
  TrainerConfig,
  ValueModelConfig,
  valueTrainer,
} from "../../workers/mod.ts";

Deno.test("resumeOverrides() takes the numerics that a replan may change, and refuses every other setting by name", () => {
  deepStrictEqual(resumeOverrides(["trainer.ranks=1", "trainer.devices=[0, 2]"]), {
    "trainer.ranks": 1,
    "trainer.devices": [0, 2],
  });
  for (const text of ["seed=2", "trainer.zero=3", "trainer.optimizer.lr=1"]) {
    throws(() => resumeOverrides([text]), ({ code, message }: InvalidInputError) => {
      return code === "invalid_input" && message.includes(`'${text}'`) && message.includes("trainer.ranks");
    });
  }
  throws(() => resumeOverrides(["trainer.ranks"]), /PATH=VALUE/);
});

Deno.test("askedReplans() says what changes, from the last replan on, and nothing that is so already", () => {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2, zero: 1 });
  const earlier: Replan[] = [{ round: 3, cause: "asked", field: "trainer.ranks", from: 2, to: 4 }];
  deepStrictEqual(askedReplans(trainer, earlier, { "trainer.ranks": 4 }), []);
  const rows = askedReplans(trainer, earlier, { "trainer.ranks": 1, "trainer.micro_batch_tokens_max": 512 });
  deepStrictEqual(rows.map(({ field, from, to }) => `${field} ${from} ${to}`), [
    "trainer.ranks 4 1",
    "trainer.micro_batch_tokens_max 4096 512",
  ]);
  const { ranks, zero, micro_batch_tokens_max } = replanned(trainer, [...earlier, ...rows]);
  deepStrictEqual([ranks, zero, micro_batch_tokens_max], [1, 1, 512]);
});

Deno.test("askedReplans() refuses what the trainer cannot be", () => {
  const torch = TrainerConfig.parse({});
  throws(() => askedReplans(torch, [], { "trainer.ranks": 2 }), /trainer.engine is torch, which is one process/);
  throws(() => askedReplans(torch, [], { "trainer.micro_batch_tokens_max": 0 }), /micro_batch_tokens_max=0/);
});

Deno.test("askedReplans() of the value model's block: its own fields, from what it has now", () => {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2 });
  const values = ValueModelConfig.parse({ micro_batch_tokens_max: 512 });
  const asked = resumeOverrides(["value_model.ranks=1", "trainer.ranks=4"]);
  const rows = askedReplans(valueTrainer(trainer, values), [], asked, "value_model");
  deepStrictEqual(rows.map(({ field, from, to }) => `${field} ${from} ${to}`), ["value_model.ranks 2 1"]);
  deepStrictEqual(replanned(trainer, rows).ranks, 2);
  deepStrictEqual(valueTrainer(trainer, replanned(values, rows, "value_model")).ranks, 1);
});
