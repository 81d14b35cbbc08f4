import { ask, done } from "./ask.ts";
import type { CallOptions } from "./call.ts";
import type { Operator } from "./operator.ts";
import type { AnyRole } from "./roles/role.ts";

type FromRecord<R extends AnyRole> = Extract<R["rebuilt"], { from_record: unknown }> extends {
  from_record(ask: never, recorded: infer Recorded): Promise<infer Result>;
} ? { recorded: Recorded; result: Result }
  : never;

/** Brings a worker to a recorded state, as its role declares. Returns what the declaration does. */
export async function rebuild<R extends AnyRole>(
  operator: Operator,
  [role, recorded]: readonly [role: R, recorded: FromRecord<R>["recorded"]],
  options: CallOptions,
): Promise<FromRecord<R>["result"]> {
  const call = async (op: string, args: unknown) =>
    done(await ask(operator, [role as AnyRole, op], args as never, options)).answers[0];
  const { rebuilt } = role;
  if (typeof rebuilt !== "object") {
    throw new TypeError(
      `Cannot rebuild a ${role.name} from a record because its role declares another way: ` +
        "give its `rebuilt` a `from_record`",
    );
  }
  return await rebuilt.from_record(call, recorded);
}
