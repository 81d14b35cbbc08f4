import { LostRecordError } from "../errors.ts";
import type { EngineEventBody } from "../events.ts";
import type { Graph } from "../graph/types.ts";
import type { Journal } from "../journal/journal.ts";
import { isUnder } from "../graph/keys.ts";
import type { Resource } from "../graph/resource.ts";

/** The run whose files are checked. */
type Replayed = {
  readonly settings: { journal: Journal };
  resource<T>(token: Resource<T>, key: string): T;
  event(body: EngineEventBody): void;
};

/** Nothing if the record is lost: its readers report that. */
async function read(output: () => unknown): Promise<unknown> {
  try {
    return await output();
  } catch (error) {
    if (error instanceof LostRecordError) return undefined;
    throw error;
  }
}

/**
 * Stages of the graph itself whose recorded files are gone (`leaves`). They are recreated one by
 * one, in graph order, before anything else starts, because work that replays from the journal may
 * not have waited for them.
 */
export class Remaking {
  readonly #open = new Map<string, PromiseWithResolvers<void>>();

  /** Checks the files of every recorded stage that leaves some. */
  async find(execution: Replayed, { nodes }: Pick<Graph, "nodes">): Promise<void> {
    const { journal } = execution.settings;
    for (const node of nodes) {
      const { leaves } = node.kind === "stage" ? node.stage : {};
      const { key, result } = journal.root.at(node.name);
      if (leaves === undefined || result === undefined) continue;
      const resource = <T>(token: Resource<T>) => execution.resource(token, key);
      const output = await read(() => journal.output(key, result));
      if (output === undefined || await leaves.areThere(output, { resource })) continue;
      execution.event({
        type: "log",
        key,
        text: `the files of ${key} are gone: they are ` +
          `recreated`,
      });
      this.#open.set(key, Promise.withResolvers());
    }
  }

  has(key: string): boolean {
    return this.#open.has(key);
  }

  /** Settles when nothing must be recreated before the work of this key. */
  async turnOf(key: string): Promise<void> {
    for (const [before, { promise }] of this.#open) {
      if (isUnder(key, before)) return;
      await promise;
    }
  }

  /** It was recreated, or has failed permanently, which ends the run. */
  over(key: string): void {
    this.#open.get(key)?.resolve();
    this.#open.delete(key);
  }
}
