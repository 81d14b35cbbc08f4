import { defineResource, InvalidInputError, type Resource } from "../engine/mod.ts";
import {
  type Answered,
  type ArgumentsOf,
  ask,
  askResident,
  done,
  type OperationOf,
} from "./ask.ts";
import { callOptions } from "./call.ts";
import type { Caller, Operator } from "./operator.ts";
import type { AnyRole, NotResident } from "./roles/role.ts";
import { Turns } from "./turns.ts";

/**
 * The workers of a role from the point of view of stages. The first free one takes the next
 * operation. A worker that lacks what the operation needs is rebuilt first, as the role declares.
 *
 * @example
 * ```ts
 * const trackers = context.resource(workersOf(trackerRole));
 * const { answers: [found] } = await trackers.ask("track", { frames }, context);
 * ```
 */
export class RoleWorkers<R extends AnyRole> {
  readonly #role: R;
  readonly #operators: readonly Operator[];
  readonly #turns: Turns;

  /** Uses these groups of the role. `turns`: of everybody who calls them. Absent: nobody else does. */
  constructor(role: R, operators: readonly Operator[], turns: Turns = new Turns()) {
    this.#role = role;
    this.#operators = operators;
    this.#turns = turns;
  }

  /** How many groups of the role there are. */
  get count(): number {
    return this.#operators.length;
  }

  /** Calls an operation, on the worker that has this work from an earlier engine if there is one. */
  async ask<Op extends OperationOf<R>>(
    op: Op,
    args: ArgumentsOf<R, Op>,
    caller: Caller,
  ): Promise<Answered<R, Op>> {
    const holder = await this.holder(op, args, caller);
    return await this.turn(
      caller,
      (operator) => this.#resident(operator, [op, args], caller),
      holder,
    );
  }

  /** The worker that has this work from an earlier engine. */
  async holder(op: string, args: unknown, caller: Caller): Promise<Operator | null> {
    const held = await Promise.all(
      this.#operators.map((operator) => operator.holds?.(op, args, callOptions(caller))),
    );
    return this.#operators[held.indexOf(true)] ?? null;
  }

  /** Runs `work` with each worker, as `turn` does. The results are in the groups' order. */
  async eachInTurn<T>(caller: Caller, work: (operator: Operator) => Promise<T>): Promise<T[]> {
    return await Promise.all(
      this.#operators.map((operator) => this.turn(caller, work, operator)),
    );
  }

  /**
   * Runs `work` with `wanted`, or with the first free worker, to itself: nothing may come between
   * rebuilding a worker and the operation that needs it. A loss that `work` did not take is recorded
   * as recovered by a restart.
   */
  async turn<T>(
    caller: Caller,
    work: (operator: Operator) => Promise<T>,
    wanted: Operator | null = null,
  ): Promise<T> {
    if (this.count === 0) {
      const { name } = this.#role;
      throw new InvalidInputError(
        `Cannot ask a ${name} because the run has none. ` +
          `Fix: add a block '${name}' that plans a group to the configuration`,
        { role: name },
      );
    }
    const among = wanted === null ? this.#operators : [wanted];
    return await this.#turns.take(among, caller, async (operator) => {
      const outcome = await work(operator);
      const loss = operator.takeLoss?.() ?? null;
      if (loss) {
        const row = { ...loss, action: "restart", version: null, batches_redone: 0 };
        await caller.record("recovery", caller.key, row);
      }
      return outcome;
    });
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
    const call = (name: string, input: unknown) =>
      ask(operator, [this.#role, name as Op], input as ArgumentsOf<R, Op>, options) as Promise<
        Answer
      >;
    const bring = async () => {
      if (typeof rebuilt !== "function") return; // Its next answer is the error.
      await rebuilt(
        async (name: string, input: unknown) => done(await call(name, input)).answers[0],
        args,
      );
    };
    return await askResident(() => call(op, args), { bring });
  }
}

/** The resource by which stages get the workers of a role. */
export function workersOf<R extends AnyRole>(role: R): Resource<RoleWorkers<R>> {
  return defineResource(`workers/${role.name}`);
}
