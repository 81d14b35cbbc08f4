/** What is committed together, and when. `W`: one write. `G`: what one transaction carries. */
type GroupCommitOptions<W, G> = {
  /** Settles when whatever is asked for at this moment has been asked for. */
  turn(): Promise<void>;
  /** Of what waits, what goes next; the rest waits on. At least one write goes. */
  load(waiting: W[]): { group: G; rest: W[] };
  /** Carries a group out and settles all its writes, whatever happens: it never rejects. */
  commit(group: G): Promise<void> | void;
};

/**
 * Group commit: writes that are asked for at one moment share a transaction and its fsync. One
 * group is on its way at a time; what is asked for meanwhile shares the next.
 */
export class GroupCommit<W, G> {
  readonly #options: GroupCommitOptions<W, G>;
  #waiting: W[] = [];
  #flight: Promise<void> | null = null;

  constructor(options: GroupCommitOptions<W, G>) {
    this.#options = options;
  }

  add(write: W): void {
    this.hold(write);
    this.start();
  }

  /** Joins the next group, which a later `add` or `start` causes. */
  hold(write: W): void {
    this.#waiting.push(write);
  }

  /** Commits what is held. */
  start(): void {
    if (this.#waiting.length > 0) this.#flight ??= this.#fly();
  }

  /** Settles when nothing waits. */
  async idle(): Promise<void> {
    this.start();
    while (this.#flight) await this.#flight;
  }

  async #fly(): Promise<void> {
    const { turn, load, commit } = this.#options;
    while (this.#waiting.length > 0) {
      await turn();
      const { group, rest } = load(this.#waiting);
      this.#waiting = rest;
      await commit(group);
    }
    this.#flight = null;
  }
}
