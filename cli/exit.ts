/** Exit codes of the contract: done; bad input, nothing started; failed or cancelled; interrupted, resumable. */
export const EXIT = { done: 0, bad_input: 2, failed: 3, interrupted: 130 } as const;
