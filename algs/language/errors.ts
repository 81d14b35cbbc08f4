/**
 * A loss that breaks a rule of the language. `rule` is its number in `rules.ts`, 0 for how
 * expressions are built.
 */
export class LossError extends Error {
  readonly code = "loss_rule";
  readonly cause_kind = "user_code";
  readonly retryable = false;
  readonly facts: { rule: number };

  constructor(rule: number, message: string) {
    super(message);
    this.name = "LossError";
    this.facts = { rule };
  }

  toJSON(): Record<string, unknown> {
    return { code: this.code, retryable: this.retryable, message: this.message, facts: this.facts };
  }
}
