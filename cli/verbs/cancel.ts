import { computedStatus, InvalidInputError } from "../../engine/mod.ts";
import { cancelAndEnd, findRun, type Home } from "../../runs/mod.ts";
import { command, print } from "../display/output.ts";
import { ARGUMENTS } from "../arguments.ts";
import { defineVerb } from "../verb.ts";

/** `cancel RUN`: ends a run permanently, immediately if no engine executes it. */
export const cancelVerb = defineVerb({
  name: "cancel",
  about: "cancel a run permanently",
  arguments: { "<run>": ARGUMENTS.run },
  options: {},
  action: ({ args, globals }) =>
    globals.withHome(async (home) => print(await cancelRun(home, args.run))),
});

/**
 * Returns a sentence about the result.
 * @throws {InvalidInputError} If the run has already ended in a different way.
 */
export async function cancelRun(home: Home, id: string): Promise<string> {
  const before = await findRun(home, id);
  const head = await cancelAndEnd(home, before.id);
  const { status, owner } = head;
  if (status === "cancelled") {
    return before.status === "cancelled"
      ? `run ${id} was cancelled already`
      : `run ${id} is cancelled`;
  }
  if (status === "done" || status === "failed") {
    const then = status === "done"
      ? ""
      : `. None of it is running; only ${command(home, `resume ${id}`)} would start it again`;
    throw new InvalidInputError(
      `Cannot cancel run '${id}' because it has ended: its status is ${status}${then}`,
      {
        run: id,
        status,
      },
    );
  }
  const engine = owner === null
    ? "its engine"
    : `its engine (process ${owner.pid} on ${owner.host})`;
  const ending = computedStatus(head) === "interrupted"
    ? "ends it once its lease expires"
    : "ends it";
  return `run ${id} was asked to cancel; ${engine} ${ending}`;
}
