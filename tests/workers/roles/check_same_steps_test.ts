import { deepStrictEqual, match, throws } from "node:assert/strict";
import { RemadeDifferentlyError } from "../../../engine/mod.ts";
import { checkSameSteps } from "../../../workers/roles/check_same_steps.ts";

const step = (loss: number | null, grad_norm: number | null = 1) => ({ loss, grad_norm });
const VERSION = "0123456789abcdef";

Deno.test("checkSameSteps() accepts equal bits, and steps that were skipped alike", () => {
  const steps = [step(0.1), step(null, null)];
  checkSameSteps(VERSION, { recorded: steps, redone: structuredClone(steps) });
});

Deno.test("checkSameSteps() refuses a different bit, a sign of zero and a missing step", () => {
  const recorded = [step(0.1), step(0)];
  for (const redone of [[step(0.1 + 2 ** -56), step(0)], [step(0.1), step(-0)], [step(0.1)]]) {
    throws(() => checkSameSteps(VERSION, { recorded, redone }), RemadeDifferentlyError);
  }
  throws(
    () => checkSameSteps(VERSION, { recorded: [step(1)], redone: [step(2, null)] }),
    (error: RemadeDifferentlyError) => {
      deepStrictEqual(
        error.message,
        "Cannot redo version 0123456789ab because the redone step differs from the recorded " +
          "one: recorded loss 1, grad_norm 1; redone loss 2, grad_norm null. Redo on the same " +
          "hardware, thread count and package versions",
      );
      const facts = { version: VERSION, recorded: [step(1)], redone: [step(2, null)] };
      deepStrictEqual(error.facts, facts);
      return true;
    },
  );
});

Deno.test("checkSameSteps() refuses another loss scale, and shows it", () => {
  const of = (loss_scale: number) => [{ ...step(1), loss_scale }];
  checkSameSteps(VERSION, { recorded: of(4), redone: of(4) });
  throws(
    () => checkSameSteps(VERSION, { recorded: of(4), redone: of(2) }),
    /recorded loss 1, grad_norm 1, loss_scale 4; redone loss 1, grad_norm 1, loss_scale 2\. /,
  );
});

Deno.test("checkSameSteps() says when rows are rendered to other tokens", () => {
  const of = (loss: number, tokens_sha256: string) => [{ ...step(loss), tokens_sha256 }];
  const message = (recorded: ReturnType<typeof of>, redone: ReturnType<typeof of>) => {
    try {
      checkSameSteps(VERSION, { recorded, redone });
    } catch (error) {
      return (error as Error).message;
    }
  };
  match(
    message(of(1, "a"), of(2, "b"))!,
    /because its rows are rendered to other tokens .* tokenizer or chat template .* Fix: restore/,
  );
  match(message(of(1, "a"), of(2, "a"))!, /recorded loss 1.*thread count and package versions$/);
  // Equal losses by chance are no equal steps.
  match(message(of(1, "a"), of(1, "b"))!, /rendered to other tokens/);
});
