/** When a round is evaluated, what its results are called, and who waits for them. */
import { z } from "zod";
import { Policy } from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";

const DueInput = z.strictObject({
  round: z.int().positive(),
  every_rounds: z.int().positive(),
  last: z.int().positive().describe("The loop's last round: it is always evaluated."),
});
/** @internal */
type DueInput = z.infer<typeof DueInput>;

/** Whether a round's policy is evaluated. Pure: safe to run twice. */
export const evaluationDue: Stage<DueInput, boolean> = defineStage({
  name: "evaluation_due",
  version: 1,
  input: DueInput,
  output: z.boolean(),
  eager: true,
  run: ({ round, every_rounds, last }) => round % every_rounds === 0 || round === last,
});

const AwaitInput = z.strictObject({
  policy: Policy,
  evaluations: z.array(z.strictObject({ name: z.string() }).catchall(z.unknown())),
});
/** @internal */
type AwaitInput = z.infer<typeof AwaitInput>;

/**
 * Passes a policy on once it is evaluated: what trains or saves it afterwards cannot run ahead, so
 * no trainer has to go back to it. Pure: safe to run twice.
 */
export const awaitEvaluations: Stage<AwaitInput, Policy> = defineStage({
  name: "await_evaluations",
  version: 1,
  input: AwaitInput,
  output: Policy,
  eager: true,
  run: ({ policy }) => policy,
});

/** The name of an evaluation whose stage is wired once for every round of a loop. */
export function evaluationNamed({ name, round }: { name: string; round?: number }): string {
  return round === undefined ? name : name.replace("{round}", String(round));
}
