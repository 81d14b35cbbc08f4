import type { z } from "zod";
import { InfrastructureError } from "../engine/mod.ts";
import type { CallOptions } from "./call.ts";
import type { Operator } from "./operator.ts";
import { type AnyRole, NotResident, type Operation } from "./roles/role.ts";

/** @internal */
export type OperationOf<R extends AnyRole> = keyof R["operations"] & string;
type Of<R extends AnyRole, Op extends OperationOf<R>> = R["operations"][Op] extends Operation
  ? R["operations"][Op]
  : never;
type Output<R extends AnyRole, Op extends OperationOf<R>> = z.output<Of<R, Op>["output"]>;

/** What an operation of a role takes. */
export type ArgumentsOf<R extends AnyRole, Op extends OperationOf<R>> = z.input<Of<R, Op>["args"]>;
/** The answer of a rank that did the work. */
type AnswerOf<R extends AnyRole, Op extends OperationOf<R>> = Exclude<
  Output<R, Op>,
  NotResident
>;

/** Answers in rank order, and the blobs of rank 0. */
export type Answered<R extends AnyRole, Op extends OperationOf<R>> = {
  answers: [AnswerOf<R, Op>, ...AnswerOf<R, Op>[]];
  blobs: Uint8Array[];
};
/**
 * The answers, or `not_resident` if the operation needs a version that is not resident. Then
 * nothing was done.
 */
export type Reply<R extends AnyRole, Op extends OperationOf<R>> =
  | Answered<R, Op>
  | (NotResident extends Output<R, Op> ? NotResident : never);

/** An operation of a role by its declared types. */
type Question<R extends AnyRole, Op extends OperationOf<R>> = readonly [role: R, op: Op];

/**
 * Calls an operation and checks what every rank answers against its declaration. The worker checks
 * the arguments.
 *
 * @throws {InfrastructureError} If an answer is not as declared.
 */
export async function ask<R extends AnyRole, Op extends OperationOf<R>>(
  operator: Operator,
  [role, op]: Question<R, Op>,
  args: ArgumentsOf<R, Op>,
  options: CallOptions,
): Promise<Reply<R, Op>> {
  const { outputs, blobs } = await operator.call(op, args, options);
  const refused = NotResident.safeParse(outputs[0]);
  if (refused.success) return refused.data as Reply<R, Op>;
  const { output } = role.operations[op] as Operation;
  const answers = outputs.map((found, rank) => {
    const read = output.safeParse(found);
    if (read.success) return read.data as AnswerOf<R, Op>;
    const { path, message } = read.error.issues[0]!;
    throw new InfrastructureError(
      `Cannot read the answer of rank ${rank} of the ${role.name} to '${op}' because ${
        path.join(".") || "it"
      } is not as ` +
        `declared: ${message}`,
      { role: role.name, op, rank },
    );
  });
  return { answers: answers as Answered<R, Op>["answers"], blobs };
}

/** Whether nothing was done because another version is resident. */
export function isNotResident(reply: object): reply is NotResident {
  return "not_resident" in reply;
}

type Work = { answers: unknown[] };

/**
 * The answer to an operation whose version was made resident just before. @throws
 * {InfrastructureError} If it is not.
 */
export function done<Done extends Work>(reply: Done | NotResident): Done {
  if (!isNotResident(reply)) return reply;
  throw new InfrastructureError(
    `Cannot use a version because the worker does not have it right after loading it: it has ${
      reply.not_resident ?? "none"
    }`,
    reply,
  );
}

/**
 * Calls an operation that names a version. If another version is resident, `bring` loads this one
 * and the operation is called once more.
 *
 * @throws {InfrastructureError} If the version is not resident right after `bring`.
 */
export async function askResident<Done extends Work>(
  call: () => Promise<Done | NotResident>,
  { bring }: { bring: (held: string | null) => Promise<void> },
): Promise<Done> {
  const first = await call();
  if (!isNotResident(first)) return first;
  await bring(first.not_resident);
  return done(await call());
}
