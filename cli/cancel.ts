import { computedStatus, InvalidInputError } from "../engine/mod.ts";
import { cancelAndEnd, type Home } from "../runs/mod.ts";
import { command } from "./output.ts";
import { findRun } from "./runs.ts";

/**
 * `cancel RUN`: ends a run for good, at once if nobody executes it. What became of it, in a sentence.
 * @throws {InvalidInputError} If the run has ended otherwise: that stands.
 */
export async function cancelCommand(home: Home, id: string): Promise<string> {
  const before = await findRun(home, id);
  const head = await cancelAndEnd(home, before.id);
  const { status, owner } = head;
  if (status === "cancelled") {
    return before.status === "cancelled" ? `run ${id} was cancelled already` : `run ${id} is cancelled`;
  }
  if (status === "done" || status === "failed") {
    const then = status === "done"
      ? ""
      : `. Nothing of it runs; only ${command(home, `resume ${id}`)} would start it again`;
    throw new InvalidInputError(`Cannot cancel run '${id}' because it has ended: its status is ${status}${then}`, {
      run: id,
      status,
    });
  }
  const engine = owner === null ? "its engine" : `its engine (process ${owner.pid} on ${owner.host})`;
  const asked = computedStatus(head) === "interrupted" ? "ends it once its lease is over" : "ends it";
  return `run ${id} was asked to cancel; ${engine} ${asked}`;
}
