/** Workers that a test answers for. */
import { defineResource, type Resource } from "../engine/mod.ts";

/** A task as a fake worker is given it. */
export type FakeTask = {
  key: string;
  input: unknown;
  signal: AbortSignal;
  finish(output: unknown): void;
  fail(error: Error): void;
};

/**
 * Workers of one group, as a resource: tasks wait until the test ends them, or are answered at once
 * by `answer`.
 */
export class FakeWorkers {
  /** Every start, in order. */
  readonly started: string[] = [];
  /** Every end, in order. */
  readonly finished: string[] = [];
  /** Tasks that wait for the test. */
  readonly open = new Map<string, FakeTask>();
  /** The most tasks that were open at once. */
  open_max = 0;
  #watchers: { ready(): boolean; resolve(): void }[] = [];

  /** With `answer`, tasks end immediately; without it, each waits for the test in `open`. */
  constructor(readonly answer?: (task: { key: string; input: unknown }) => unknown) {}

  /** For a stage's body: `ctx.resource(token).run(ctx, input)`. */
  run({ key, signal }: { key: string; signal: AbortSignal }, input: unknown): Promise<unknown> {
    const task = { key, signal, input };
    this.started.push(key);
    const answered = new Promise<unknown>((resolve, reject) => {
      const abort = () => fail(task.signal.reason);
      const end = () => {
        this.open.delete(task.key);
        task.signal.removeEventListener("abort", abort);
        this.finished.push(task.key);
        this.#tell();
      };
      const finish = (output: unknown) => (end(), resolve(output));
      const fail = (error: Error) => (end(), reject(error));
      this.open.set(task.key, { ...task, finish, fail });
      task.signal.addEventListener("abort", abort);
      this.open_max = Math.max(this.open_max, this.open.size);
      if (this.answer) Promise.resolve(this.answer(task)).then(finish, fail);
    });
    this.#tell();
    return answered;
  }

  /** The task of this key, once it has been started. */
  async task(key: string): Promise<FakeTask> {
    await this.until(() => this.open.has(key));
    return this.open.get(key)!;
  }

  /** Settles once the condition holds; it is looked at whenever a task starts or ends. */
  until(ready: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.push({ ready, resolve });
      this.#tell();
    });
  }

  #tell(): void {
    const ready = this.#watchers.filter((watcher) => watcher.ready());
    this.#watchers = this.#watchers.filter((watcher) => !ready.includes(watcher));
    for (const watcher of ready) watcher.resolve();
  }
}

/** Token of a group of fake workers. */
export function fakeWorkers(group: string): Resource<FakeWorkers> {
  return defineResource<FakeWorkers>(group);
}
