/** Finds the newest round from which a run with damaged records can continue. */
import { z } from "zod";
import {
  EngineError,
  isNothing,
  LostRecordError,
  type NewRow,
  recordedValue,
  type RunHead,
} from "../../engine/mod.ts";
import { ArtifactRef } from "../../data/mod.ts";
import { firstProblem, problemText, recordedRows, VersionChain } from "../../workers/mod.ts";
import { carriedVersions, planFork } from "./fork_run.ts";
import type { Home } from "../home/home.ts";
import { residentRows } from "./lineage.ts";
import { recordedDefinition } from "../session/run_graph.ts";

/** `loop` as `fork --round` expects it: null if it is the default loop for counting rounds. */
type Forkable = { loop: string | null; round: number };

/**
 * The newest closed round, in the last loop first, whose prefix is intact with everything that its
 * versions are rebuilt from; null: there is none. Tries one after the other, so it is called only
 * if something is known to be lost.
 */
export async function newestForkable(home: Home, run: RunHead): Promise<Forkable | null> {
  const { definition, config } = await recordedDefinition(home.store, run, { accept: true });
  const loops = definition.build(config).nodes.filter((node) => node.kind === "loop").map((
    { name },
  ) => name).reverse();
  for (const [place, loop] of loops.entries()) {
    for (const round of await closedRounds(home, { run, loop })) {
      if (await isWhole(home, { run, loop, round })) {
        return { loop: place === 0 ? null : loop, round };
      }
    }
  }
  return null;
}

/** Newest first; 0: before the first. */
async function closedRounds(
  home: Home,
  { run, loop }: { run: RunHead; loop: string },
): Promise<number[]> {
  const rows = await home.store.read(run.id, { kinds: ["round"], prefix: `${loop}/` });
  const rounds = rows.map(({ key }) => key.slice(loop.length + 1)).filter((rest) =>
    !rest.includes("/")
  ).map(Number);
  return [...rounds.reverse(), 0];
}

/** Any damage means no. */
async function isWhole(
  home: Home,
  { run, loop, round }: { run: RunHead; loop: string; round: number },
): Promise<boolean> {
  try {
    const { prefix } = await planFork(home, run, { loop, round, accept: true });
    for (const row of prefix.rows) await checkRow(home, row);
    const chain = new VersionChain(
      home.artifacts,
      recordedRows(await residentRows(home.store, run)),
    );
    for (const version of await carriedVersions(home.artifacts, prefix)) {
      await checkRoute(chain, version);
    }
    return true;
  } catch (error) {
    if (error instanceof EngineError || error instanceof z.ZodError || isNothing(error)) {
      return false;
    }
    throw error;
  }
}

/** What a row refers to. A version's record counts if the version is rebuilt through it. */
async function checkRow({ artifacts }: Home, row: NewRow): Promise<void> {
  for (const ref of refsIn(recordedValue(row))) await artifacts.check(ref);
}

function refsIn(value: unknown): ArtifactRef[] {
  if (typeof value !== "object" || value === null) return [];
  const ref = ArtifactRef.safeParse(value);
  if (ref.success) return [ref.data];
  return Object.entries(value).flatMap(([name, below]) => name === "record" ? [] : refsIn(below));
}

/** A fork inherits its checkpoint unchanged, so a damaged one does not count. */
async function checkRoute(chain: VersionChain, version: string): Promise<void> {
  const { start: { checkpoint }, redo } = await chain.routeTo(version);
  const problem = checkpoint && await firstProblem(checkpoint.dir, checkpoint.files);
  if (problem) {
    throw new LostRecordError(
      `Cannot start from ${checkpoint.dir} because ${problemText(problem)}`,
    );
  }
  for (const step of redo) await chain.checkArtifacts(step);
}
