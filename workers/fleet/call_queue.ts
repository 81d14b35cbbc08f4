import { InfrastructureError } from "../../engine/mod.ts";

/** Calls that may wait for their turn. */
const QUEUE_MAX = 64;

/** One call's place in the queue. */
type Turn = {
  /** Settles when the call is next. */
  begins: Promise<void>;
  /** Lets the next call begin: after the turns before this one, and after `over`. */
  end(over: Promise<void> | undefined): void;
};

/** The calls of one group, one after another in the order they came. */
export class CallQueue {
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** @throws {InfrastructureError} If too many calls wait. */
  join({ op, group }: { op: string; group: string }): Turn {
    if (this.#waiting >= QUEUE_MAX) {
      throw new InfrastructureError(
        `Cannot queue '${op}' on ${group} because ${this.#waiting} calls wait: ` +
          `the limit is ${QUEUE_MAX}`,
        { group, op },
      );
    }
    const begins = this.#tail;
    const done = Promise.withResolvers<void>();
    this.#tail = done.promise;
    this.#waiting += 1;
    return {
      begins,
      end: (over) => {
        this.#waiting -= 1;
        begins.then(() => over).then(done.resolve);
      },
    };
  }
}
