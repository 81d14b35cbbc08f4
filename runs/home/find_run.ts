import { didYouMean } from "../../configs/mod.ts";
import { checkJournal, computedStatus, InvalidInputError, type RunHead } from "../../engine/mod.ts";
import type { Home } from "./home.ts";

/**
 * The head of a run, or an error that names the existing runs. Without a name: the newest run that
 * can be resumed.
 * @throws {InvalidInputError} If a newer Holdfast has written its journal.
 */
export async function findRun(home: Home, id: string | undefined): Promise<RunHead> {
  if (id === undefined) return newestResumable(await home.store.heads({ limit: 1000 }));
  const head = await home.store.head(id);
  if (head) return checkJournal(head);
  const heads = await home.store.heads({ limit: 1000, onDamaged: () => {} }); // Only for their names.
  const near = didYouMean(id, heads.map((known) => known.id));
  const has = heads.length === 0 ? "it has no runs" : `'runs' lists its ${heads.length}`;
  throw new InvalidInputError(`Cannot find run '${id}' in ${home.dir}${near}: ${has}`, { run: id });
}

function newestResumable(heads: RunHead[]): RunHead {
  const found = heads.filter((head) => ["interrupted", "failed"].includes(computedStatus(head)))
    .toSorted((a, b) => b.updated_ms - a.updated_ms)[0];
  if (found) return found;
  throw new InvalidInputError(
    `Cannot resume because no run is interrupted or failed: 'runs' lists all runs`,
    {},
  );
}

/** Id of the run that was started last. */
export async function newestRun(home: Home): Promise<string> {
  const heads = await home.store.heads({ limit: 1000 });
  const newest = heads.toSorted((a, b) => b.created_ms - a.created_ms)[0];
  if (newest) return newest.id;
  throw new InvalidInputError(
    `Cannot show a run because ${home.dir} has none: start one with 'run CONFIG'`,
    {},
  );
}
