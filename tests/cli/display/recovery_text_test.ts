import { deepStrictEqual } from "node:assert/strict";
import { recoveryText } from "../../../cli/display/recovery_text.ts";

Deno.test("recoveryText() says what was lost and what was done, in one line", () => {
  const recovery = { cause: "worker_lost", action: "load_checkpoint", batches_redone: 2 };
  deepStrictEqual(
    [
      recovery,
      { ...recovery, cause: "resume" },
      { ...recovery, action: "adopt" },
      { cause: "resume", error: "{}" },
    ].map(recoveryText),
    [
      "recovered from worker_lost: load_checkpoint, 2 batches redone",
      "resumed: load_checkpoint, 2 batches redone",
      "adopted the previous engine's workers",
      "resumed after it had failed",
    ],
  );
});
