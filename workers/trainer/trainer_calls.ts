import {
  type Answered,
  type AnswerOf,
  type ArgumentsOf,
  ask,
  type Asked,
  type OperationOf,
} from "../ask.ts";
import { type CallOptions, callOptions } from "../call.ts";
import type { Caller, Operator } from "../operator.ts";
import { trainerRole } from "../roles/trainer.ts";

/** @internal */
export type TrainerRole = typeof trainerRole;
/** @internal */
export type TrainerOperation = OperationOf<TrainerRole>;

/** The operations of one trainer group, and the chain of versions to which its rows belong. */
export class TrainerCalls {
  readonly #operator: Operator;
  readonly #group: string | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(operator: Operator, group: string | undefined) {
    this.#operator = operator;
    this.#group = group;
  }

  /** The mark of a row's chain. None for the policy's. */
  get mark(): { group?: string } {
    return this.#group === undefined ? {} : { group: this.#group };
  }

  /** The caller, with the mark on every row that it records. */
  marking(caller: Caller): Caller {
    if (this.#group === undefined) return caller;
    const record: Caller["record"] = (kind, key, value) =>
      caller.record(kind, key, { ...this.mark, ...value as Record<string, unknown> });
    return { ...callOptions(caller), record, emit: (emission) => caller.emit?.(emission) };
  }

  ask<Op extends TrainerOperation>(
    op: Op,
    args: ArgumentsOf<TrainerRole, Op>,
    options: CallOptions,
  ): Promise<Asked<TrainerRole, Op>> {
    return ask(this.#operator, [trainerRole, op], args, options);
  }

  /** Runs an operation that needs no version. Returns rank 0's answer. */
  async alone<Op extends "create_model" | "inspect_model" | "open_algorithm">(
    op: Op,
    args: ArgumentsOf<TrainerRole, Op>,
    caller: Caller,
  ): Promise<AnswerOf<TrainerRole, Op>> {
    const { answers } = await this.exclusive(
      caller,
      () => this.ask(op, args, caller),
    ) as Answered<TrainerRole, Op>;
    return answers[0];
  }

  /**
   * Runs `work` after the work before it: nothing may come between bringing a version back and
   * the operation that needs it. Records a loss that cost no version.
   */
  exclusive<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
    const whole = async () => {
      const done = await work();
      const loss = this.#operator.takeLoss?.() ?? null;
      if (loss) {
        const row = { ...loss, action: "restart", version: null, batches_redone: 0 };
        await this.marking(caller).record("recovery", caller.key, row);
      }
      return done;
    };
    const turn = this.#tail.then(whole, whole);
    this.#tail = turn.catch(() => undefined);
    return turn;
  }
}
