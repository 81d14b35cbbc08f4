import { strictEqual } from "node:assert/strict";
import { StageFailedError, WorkerLostError } from "../../../engine/mod.ts";
import { failureText } from "../../../cli/display/failure_text.ts";

const home = { dir: "/a/home", storeUrl: null, isStore: () => false };

Deno.test("failureText() tells the root error first and once, then the stages around it, with commands for this home", () => {
  const root = new WorkerLostError(
    "Cannot run 'train' because rank 0 failed: SIGKILL\n  | a line\n  next: deno task rl logs r",
  );
  const inner = new StageFailedError(`Cannot finish 'a/b': ${root.message}`, {
    key: "a/b",
    attempts: 3,
    error: root.toJSON(),
  });
  const outer = new StageFailedError(`Cannot finish 'a': ${inner.message}`, {
    key: "a",
    attempts: 1,
    error: inner.toJSON(),
  });
  strictEqual(
    failureText(outer.toJSON(), { run: "r", home }),
    "Cannot run 'train' because rank 0 failed: SIGKILL\n  | a line\n  next: deno task rl logs r --home /a/home\n" +
      "  in: a/b (attempt 3)\n  in: a (attempt 1)",
  );
  strictEqual(
    failureText(new WorkerLostError("Cannot continue").toJSON(), { run: "r", home }),
    "Cannot continue",
  );
});

Deno.test("failureText() names the run in a command that was written without it", () => {
  const error = new WorkerLostError(
    "Cannot redo it:\n  next: deno task rl fork RUN --round 2 trainer.ranks=N",
  );
  strictEqual(
    failureText(error.toJSON(), { run: "a", home }),
    "Cannot redo it:\n  next: deno task rl fork a --round 2 trainer.ranks=N --home /a/home",
  );
});
