import type { z } from "zod";
import { InfrastructureError } from "../engine/mod.ts";
import type { CallOptions } from "./call.ts";
import type { Operator } from "./operator.ts";
import { NotResident, OPERATIONS, type Role } from "./operations.ts";

type Operations = typeof OPERATIONS;
/** @internal */
export type OperationOf<R extends Role> = keyof Operations[R] & string;
type Declared = { args: z.ZodType; output: z.ZodType };
type Of<R extends Role, Op extends OperationOf<R>> = Operations[R][Op] extends Declared ? Operations[R][Op] : never;
type Output<R extends Role, Op extends OperationOf<R>> = z.output<Of<R, Op>["output"]>;

/** What an operation of a role takes. */
export type ArgumentsOf<R extends Role, Op extends OperationOf<R>> = z.input<Of<R, Op>["args"]>;
/** What a rank answers that did the work. */
export type AnswerOf<R extends Role, Op extends OperationOf<R>> = Exclude<Output<R, Op>, NotResident>;

/** Answers in rank order, and the blobs of rank 0. */
export type Answered<R extends Role, Op extends OperationOf<R>> = {
  answers: [AnswerOf<R, Op>, ...AnswerOf<R, Op>[]];
  blobs: Uint8Array[];
};
/**
 * Or, of an operation that names a version, that another one is resident: then nothing was done.
 */
export type Asked<R extends Role, Op extends OperationOf<R>> =
  | Answered<R, Op>
  | (NotResident extends Output<R, Op> ? NotResident : never);

/** An operation of a role by its declared types: `[role, op]` of `OPERATIONS`. */
type Question<R extends Role, Op extends OperationOf<R>> = readonly [role: R, op: Op];

/**
 * Calls an operation and checks what every rank answers against its declaration. The worker checks the arguments.
 *
 * @throws {InfrastructureError} If an answer is not as declared.
 */
export async function ask<R extends Role, Op extends OperationOf<R>>(
  operator: Operator,
  [role, op]: Question<R, Op>,
  args: ArgumentsOf<R, Op>,
  options: CallOptions,
): Promise<Asked<R, Op>> {
  const { outputs, blobs } = await operator.call(op, args, options);
  const refused = NotResident.safeParse(outputs[0]);
  if (refused.success) return refused.data as Asked<R, Op>;
  const { output } = OPERATIONS[role][op] as Declared;
  const answers = outputs.map((found, rank) => {
    const read = output.safeParse(found);
    if (read.success) return read.data as AnswerOf<R, Op>;
    const { path, message } = read.error.issues[0]!;
    throw new InfrastructureError(
      `Cannot read what rank ${rank} of the ${role} answered to '${op}' because ${path.join(".") || "it"} is not as ` +
        `declared: ${message}`,
      { role, op, rank },
    );
  });
  return { answers: answers as Answered<R, Op>["answers"], blobs };
}

/** Whether nothing was done because another version is resident. */
export function isNotResident(asked: object): asked is NotResident {
  return "not_resident" in asked;
}

/**
 * What was asked right after its version was made resident. @throws {InfrastructureError} If it is
 * not.
 */
export function done<R extends Role, Op extends OperationOf<R>>(asked: Asked<R, Op>): Answered<R, Op> {
  if (!isNotResident(asked)) return asked as Answered<R, Op>;
  throw new InfrastructureError(
    `Cannot use a version because the worker does not hold it right after it was loaded: it holds ${
      asked.not_resident ?? "none"
    }`,
    asked,
  );
}

/**
 * Calls an operation that names a version. Where another one is resident, `bring` makes this one resident and the operation is called
 * again, once.
 *
 * @throws {InfrastructureError} If the version is not resident right after `bring`.
 */
export async function askResident<R extends Role, Op extends OperationOf<R>>(
  call: () => Promise<Asked<R, Op>>,
  { bring }: { bring: (held: string | null) => Promise<void> },
): Promise<Answered<R, Op>> {
  const first = await call();
  if (!isNotResident(first)) return first as Answered<R, Op>;
  await bring(first.not_resident);
  return done(await call());
}
