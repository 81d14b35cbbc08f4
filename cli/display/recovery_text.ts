/** A `recovery` row in one line. */
export function recoveryText(value: unknown): string {
  const { cause, action, batches_redone } = value as {
    cause: string;
    action?: string;
    batches_redone: number;
  };
  if (action === undefined) return "resumed after it had failed";
  if (action === "adopt") return "adopted the previous engine's workers";
  return `${
    cause === "resume" ? "resumed" : `recovered from ${cause}`
  }: ${action}, ${batches_redone} batches redone`;
}
