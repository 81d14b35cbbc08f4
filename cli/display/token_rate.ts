/** Of shorter rounds the rate is a mean over this time. */
const SPAN_LEAST_MS = 10_000;
/** A rate of the first instants would be mostly chance. */
const MEASURED_LEAST_MS = 500;

/** Work between two times in ms; its tokens count as evenly spread over it. */
type Work = { since: number; at: number; tokens: number };

/**
 * Tokens per second, generated and trained, over a span as long as the last round: a round's parts
 * differ in speed, and work in progress has no tokens yet.
 */
export class TokenRate {
  #work: Work[] = [];
  #first = Infinity;
  #closed: number | null = null;
  #span = SPAN_LEAST_MS;

  add(work: Work): void {
    this.#work.push(work);
    this.#first = Math.min(this.#first, work.since);
  }

  roundClosed(now: number): void {
    this.#span = Math.max(SPAN_LEAST_MS, now - (this.#closed ?? this.#first));
    this.#closed = now;
    this.#work = this.#work.filter(({ at }) => at > now - this.#span);
  }

  perSecond(now: number): number {
    const from = Math.max(now - this.#span, this.#first);
    const tokens = this.#work.reduce((sum, work) => sum + work.tokens * shareAfter(from, work), 0);
    return Math.round(tokens / Math.max(MEASURED_LEAST_MS, now - from) * 1000);
  }
}

function shareAfter(from: number, { since, at }: Work): number {
  if (since >= from) return 1;
  return at > from ? (at - from) / (at - since) : 0;
}
