import { type EngineError, errorFromJson } from "../../engine/mod.ts";
import type { FailureFacts } from "./failures.ts";

/** Replacements for the same failure without committed progress in between. */
const REPLACEMENTS_MAX = 3;
/** Replacements to confirm a failure: see `confirm` in causes.ts. */
const CONFIRMATIONS_MAX = 1;
/** Replacements for failures of all kinds, so that alternating failures end too. */
const DIFFERENT_MAX = 9;
/**
 * Replacements after processes were ended from outside. That is not the work's fault, but it is
 * limited too.
 */
const UNCOUNTED_MAX = 50;

/**
 * How often something may be replaced, counted by the failure's fingerprint. Committed progress
 * restores the whole budget. A replacement, a load or a redone batch is not progress.
 */
export class ReplacementBudget {
  readonly #spent = new Map<string, number>();
  #counted = 0;
  #uncounted = 0;
  #failures = 0;
  readonly max: number;

  constructor(max = REPLACEMENTS_MAX) {
    this.max = max;
  }

  /** Replacements since the last progress. */
  get spent(): number {
    return this.#counted + this.#uncounted;
  }

  /** Failures since the beginning. Progress does not reset them. */
  get failures(): number {
    return this.#failures;
  }

  progressed(): void {
    this.#spent.clear();
    this.#counted = 0;
    this.#uncounted = 0;
  }

  /**
   * Spends one replacement on this failure. False: none is left, or the failure would only repeat.
   */
  spend(error: EngineError): boolean {
    this.#failures += 1;
    const failure = error.facts.failure as FailureFacts | undefined;
    if (failure && hopeless(failure)) return false;
    if (!error.counted) return ++this.#uncounted <= UNCOUNTED_MAX;
    const print = failure?.fingerprint ?? `${error.code}|${error.facts.op ?? ""}`;
    const spent = this.#spent.get(print) ?? 0;
    const max = failure?.action === "confirm" ? Math.min(CONFIRMATIONS_MAX, this.max) : this.max;
    if (spent >= max || this.#counted >= DIFFERENT_MAX) return false;
    this.#spent.set(print, spent + 1);
    this.#counted += 1;
    return true;
  }

  /**
   * Restores the budget once the work is recorded, unless a failure came in between and the work
   * was lost. Without `recorded`, only waits for the result.
   */
  async progressOnceRecorded(result: Promise<unknown>, recorded?: Promise<void>): Promise<void> {
    const done = result.then(() => this.#failures);
    const [work, record] = await Promise.allSettled([done, recorded]);
    const isSafe = work.status === "fulfilled" && record.status === "fulfilled";
    if (isSafe && work.value === this.#failures) this.progressed();
  }

  /** The last failure, in its own class, with how often the group was replaced because of it. */
  final(error: EngineError, group: string): EngineError {
    const { spent } = this;
    if (spent === 0) return error;
    const text =
      `${error.message}\n  ${group} was replaced ${spent} times without committed progress`;
    const json = { ...error.toJSON(), message: text, retryable: false };
    return errorFromJson({ ...json, facts: { ...error.facts, replacements: spent } });
  }
}

/**
 * A new process would fail the same way. If only the work is wrong, the group remains for other
 * work.
 */
function hopeless({ action, cause }: FailureFacts): boolean {
  return action === "stop" && cause !== "user_code" && cause !== "bad_data";
}
