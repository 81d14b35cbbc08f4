/**
 * What killed engines and workers leave in a run's directories: it is removed once the run is over
 * and nothing writes there any more.
 */
import { basename } from "node:path";
import {
  hasEnded,
  isNamed,
  isReadable,
  recordedValue,
  RemovalRefusedError,
  removeTree,
  type RunHead,
} from "../../engine/mod.ts";
import {
  ASIDE,
  CheckpointDropped,
  hasWeightsToMove,
  moveWeights,
  recordedRows,
  type SetAside,
  VersionChain,
} from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { residentRows } from "../forks/lineage.ts";
import { namesIn } from "../home/names_in.ts";
import { OWN_NAMES } from "../../flows/mod.ts";

/**
 * Removes what a done or cancelled run no longer needs: models and publications that were being
 * written or replaced, checkpoints that no row names, and `hub.json`. Removes nothing from any
 * other run, because workers that outlived their engine may be writing. What cannot be removed
 * stays, and `say` receives the reason: no run fails because it could not tidy up.
 */
export async function removeLeftovers(
  home: Home,
  run: string,
  say: (text: string) => void,
): Promise<void> {
  try {
    const head = await home.store.head(run);
    if (head === null || !hasEnded(head)) return;
    const owner = await home.owner(run);
    for (const one of await dropped(home, head)) await moveWeights(one);
    for (const { path, named } of await leftovers(home, head)) {
      await removeTree(path, { home: home.dir, owner, named }).catch((error) => {
        if (!(error instanceof RemovalRefusedError)) throw error;
        say(error.message);
      });
    }
  } catch (error) {
    say(`Leftover files of run ${run} were not removed: ${(error as Error).message}`);
  }
}

/** Checkpoints that the run has dropped, as far as rows can be read. */
async function dropped(home: Home, { id }: RunHead): Promise<CheckpointDropped[]> {
  const rows = await home.store.read(id, { kinds: ["note/checkpoint_dropped"] });
  return rows.filter(isReadable).flatMap((row) =>
    CheckpointDropped.strip().safeParse(recordedValue(row)).data ?? []
  );
}

type Leftover = { path: string; named: RegExp };

async function leftovers(home: Home, head: RunHead): Promise<Leftover[]> {
  const run = home.runDir(head.id);
  const places = [
    ...[OWN_NAMES.unfinished_model, OWN_NAMES.hub].map((named) => ({ dir: run, named })),
    ...["publications", "references"].map((folder) => ({
      dir: `${run}/${folder}`,
      named: OWN_NAMES.unfinished_weights,
    })),
  ];
  const found = await Promise.all(
    places.map(async ({ dir, named }) =>
      (await namesIn(dir)).filter((name) => isNamed(name, named)).map((name) => ({
        path: `${dir}/${name}`,
        named,
      }))
    ),
  );
  return [...found.flat(), ...await strayCheckpoints(home, head)];
}

/**
 * A run's checkpoints that no row names: started but never recorded, or dropped but not yet
 * removed. Damaged ones stay, and those whose weights will be moved. If a row cannot be read, all
 * stay, because it may be the row that names them.
 */
export async function strayCheckpoints(home: Home, head: RunHead): Promise<Leftover[]> {
  const dir = home.checkpointsDir(head.id);
  const rows = await residentRows(home.store, head);
  if (!rows.every(isReadable)) return [];
  const recorded = recordedRows(rows);
  const chain = new VersionChain(home.artifacts, recorded);
  const aside = recorded.filter(({ kind }) => kind === "note/checkpoint_set_aside").map((
    { value },
  ) => value as SetAside);
  const moving = (await dropped(home, head)).filter(hasWeightsToMove);
  const kept = new Set([
    ASIDE,
    ...[...chain.checkpoints(), ...chain.starts(), ...aside, ...moving].map((one) =>
      basename(one.dir)
    ),
  ]);
  const named = OWN_NAMES.checkpoint;
  const stray = (await namesIn(dir)).filter((name) => !kept.has(name) && isNamed(name, named));
  return stray.map((name) => ({ path: `${dir}/${name}`, named }));
}
