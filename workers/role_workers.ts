import { defineResource, InvalidInputError, type Resource } from "../engine/mod.ts";
import {
  type Answered,
  type ArgumentsOf,
  ask,
  askResident,
  done,
  type OperationOf,
} from "./ask.ts";
import { type CallOptions, callOptions } from "./call.ts";
import type { Caller, Operator } from "./operator.ts";
import type { AnyRole, NotResident } from "./roles/role.ts";
import { unlessAborted } from "./unless_aborted.ts";

/**
 * The workers of a role from the point of view of stages. Any of them takes the next operation. A
 * worker that lacks what the operation needs is rebuilt first, as the role declares.
 *
 * @example
 * ```ts
 * const trackers = context.resource(workersOf(trackerRole));
 * const { answers: [found] } = await trackers.ask("track", { frames }, context);
 * ```
 */
export class RoleWorkers<R extends AnyRole> {
  readonly #role: R;
  /** Open operations of each worker, and the end of the last one. */
  readonly #workers: Map<Operator, { given: number; tail: Promise<void> }>;

  /** Uses these groups of the role. */
  constructor(role: R, operators: readonly Operator[]) {
    this.#role = role;
    this.#workers = new Map(
      operators.map((operator) => [operator, { given: 0, tail: Promise.resolve() }]),
    );
  }

  /** How many groups of the role there are. */
  get count(): number {
    return this.#workers.size;
  }

  /** Calls an operation. A worker that was lost since the last one is recorded as recovered. */
  async ask<Op extends OperationOf<R>>(
    op: Op,
    args: ArgumentsOf<R, Op>,
    caller: Caller,
  ): Promise<Answered<R, Op>> {
    const operator = await this.#holder(op, args, caller) ?? this.#leastGiven();
    const answered = await this.#inTurn(
      operator,
      caller,
      () => this.#resident(operator, [op, args], caller),
    );
    const loss = operator.takeLoss?.() ?? null;
    if (loss) {
      await caller.record("recovery", caller.key, {
        ...loss,
        action: "restart",
        version: null,
        batches_redone: 0,
      });
    }
    return answered;
  }

  /** Retries once after the worker that refused was rebuilt. */
  async #resident<Op extends OperationOf<R>>(
    operator: Operator,
    [op, args]: [Op, ArgumentsOf<R, Op>],
    caller: Caller,
  ): Promise<Answered<R, Op>> {
    const { rebuilt } = this.#role;
    const options = callOptions(caller);
    type Answer = Answered<R, Op> | NotResident;
    const asked = (name: string, given: unknown) =>
      ask(operator, [this.#role, name as Op], given as ArgumentsOf<R, Op>, options) as Promise<
        Answer
      >;
    const bring = async () => {
      if (typeof rebuilt !== "function") return; // Its next answer is the error.
      await rebuilt(
        async (name: string, given: unknown) => done(await asked(name, given)).answers[0],
        args,
      );
    };
    return await askResident(() => asked(op, args), { bring });
  }

  /** Nothing may run on a worker between its rebuild and the operation that needed it. */
  async #inTurn<T>(
    operator: Operator,
    { signal }: CallOptions,
    work: () => Promise<T>,
  ): Promise<T> {
    const { given, tail } = this.#workers.get(operator)!;
    const turn = unlessAborted(tail, signal).then(work);
    const over = Promise.allSettled([tail, turn]).then(() =>
      void this.#workers.get(operator)!.given--
    );
    this.#workers.set(operator, { given: given + 1, tail: over });
    return await turn;
  }

  /** The worker that has this work from an earlier engine. */
  async #holder(op: string, args: unknown, caller: Caller): Promise<Operator | null> {
    const all = [...this.#workers.keys()];
    const held = await Promise.all(
      all.map((operator) => operator.holds?.(op, args, callOptions(caller))),
    );
    return all[held.indexOf(true)] ?? null;
  }

  #leastGiven(): Operator {
    const [least] = [...this.#workers].toSorted(([, a], [, b]) => a.given - b.given);
    if (least) return least[0];
    const { name } = this.#role;
    throw new InvalidInputError(
      `Cannot ask a ${name} because the run has none. ` +
        `Fix: add a block '${name}' that plans a group to the configuration`,
      { role: name },
    );
  }
}

/** The resource by which stages get the workers of a role. */
export function workersOf<R extends AnyRole>(role: R): Resource<RoleWorkers<R>> {
  return defineResource(`workers/${role.name}`);
}
