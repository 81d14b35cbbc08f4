import { match, ok, strictEqual, throws } from "node:assert/strict";
import { LossError, type LossFunction, traceLoss } from "../../../algs/mod.ts";
import type { Expression } from "../../../data/mod.ts";

/** Traces a loss without settings. */
export const trace = (loss: LossFunction<unknown>): Expression => traceLoss(loss, {});

/** Tracing refuses the loss by this rule. */
export function refused(rule: number, pattern: RegExp, loss: LossFunction<unknown>): void {
  throws(() => trace(loss), (error: unknown) => {
    ok(error instanceof LossError);
    strictEqual(error.facts.rule, rule);
    match(error.message, pattern);
    return true;
  });
}
