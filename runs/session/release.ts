/**
 * A run belongs to the release that recorded it: other code would read its rows, and continue it,
 * in its own way. A release is known by the digest of its sources, because one version names
 * every state between two of them.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import {
  canonicalJson,
  isReadable,
  type NewRow,
  recordedValue,
  ReplayDriftError,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import { SHIPPED } from "../../flows/mod.ts";
import { type Flow, FLOWS } from "../../configs/mod.ts";

/** The code that executes a run, as recorded with it. */
type Release = {
  /** Its version. */
  holdfast: string;
  /** sha256 of everything that decides what a run does. */
  sources: string;
  /** Of the clone, with `-dirty` if its files differ from it; absent: no clone, or no git. */
  commit?: string;
};

/** A release as a run has recorded it; of a damaged record, as much as can be read. */
export const Recorded = z.object({ holdfast: z.string(), sources: z.string(), commit: z.string() })
  .partial().catch({});
type Recorded = z.infer<typeof Recorded>;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The rooms that decide what a run does. The command line only asks them to. */
const ROOMS = ["algs", "configs", "data", "engine", "flows", "rewards", "rollouts", "runs"];
/** Code, and the locks of its packages. */
const SOURCE = /\.(?:ts|py|txt)$/;

let here: Release | undefined;

/**
 * The release of this process: read once, at the first call. A process that outlives an update of
 * its files calls it when it starts.
 */
export function thisRelease(): Release {
  if (here) return here;
  const commit = commitOf(ROOT);
  const release = { holdfast: versionOf(ROOT), sources: sourcesDigest(ROOT) };
  return here = commit === undefined ? release : { ...release, commit };
}

/** sha256 of the sources of an installation, by path and content. */
export function sourcesDigest(root: string): string {
  const rooms = [...ROOMS, "workers"].flatMap((room) => [...sourcesIn(root, room)]);
  const digest = createHash("sha256");
  for (const path of ["deno.lock", ...rooms].sort()) {
    const content = Deno.readFileSync(`${root}/${path}`);
    digest.update(`${path}\0${content.length}\0`).update(content);
  }
  return digest.digest("hex");
}

function* sourcesIn(root: string, dir: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(`${root}/${dir}`)) {
    if (name.startsWith(".")) continue; // An editor's lock, an environment: no release has them.
    const path = `${dir}/${name}`;
    if (isDirectory) yield* sourcesIn(root, path);
    else if (SOURCE.test(name)) yield path;
  }
}

function versionOf(root: string): string {
  return JSON.parse(Deno.readTextFileSync(`${root}/deno.json`)).version;
}

/** Of the clone at `root`, a path that ends with a slash; a repository around it says nothing. */
export function commitOf(root: string): string | undefined {
  const clone = [`--git-dir=${root}.git`, `--work-tree=${root}`];
  const args = [...clone, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
  try {
    const { success, stdout } = new Deno.Command("git", { args, stderr: "null" }).outputSync();
    return success ? new TextDecoder().decode(stdout).trim() : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** What other release a run belongs to, in words; null: this one. */
export async function otherRelease(store: Store, head: RunHead): Promise<string | null> {
  const recorded = await releaseOf(store, head);
  return recorded.sources === thisRelease().sources ? null : bothReleases(recorded);
}

function bothReleases(recorded: Recorded): string {
  return `it was recorded by ${shown(recorded)}, and this is ${shown(thisRelease())}`;
}

/**
 * What a resume records if the run belongs to another release: that it is this one's from here on.
 * @throws {ReplayDriftError} Unless `accept`. It names both releases, and the ways to continue;
 * `accepting`: how to accept, where the caller has no such option.
 */
export async function checkRelease(
  store: Store,
  head: RunHead,
  { accept = false, accepting = "--accept" }: { accept?: boolean; accepting?: string } = {},
): Promise<NewRow[]> {
  const recorded = await releaseOf(store, head);
  const now = thisRelease();
  if (recorded.sources === now.sources) return [];
  if (accept) return [{ kind: "note/release", key: "resume", value: canonicalJson(now) }];
  const commit = recorded.commit?.replace(/-dirty$/, "");
  const changes = commit === recorded.commit ? "" : ", with the changes that its files had";
  const way = commit ? `that one (git checkout ${commit}${changes})` : "the one that recorded it";
  throw new ReplayDriftError(
    `Cannot continue run '${head.id}' because its code has changed: ${bothReleases(recorded)}. ` +
      `Use ${way}, or ` +
      `${accepting} if what has changed does not matter to this run` +
      (canBeStartedFrom(head)
        ? `; or start a new run with start_from=${head.id}: it continues from the newest checkpoint`
        : ""),
    { run: head.id, recorded, now },
  );
}

/** Whether its flow has the setting. */
function canBeStartedFrom({ entry }: RunHead): boolean {
  const flow = entry.startsWith(SHIPPED) ? entry.slice(SHIPPED.length) : "";
  return Object.hasOwn(FLOWS, flow) && "start_from" in FLOWS[flow as Flow].shape;
}

/** The newest release that a resume accepted, else the one that recorded the run. */
export async function releaseOf(store: Store, { id, packages }: RunHead): Promise<Recorded> {
  const query = { kinds: ["note/release" as const], newest_first: true, limit: 1 };
  const [accepted] = await store.read(id, query);
  const row = accepted ?? { kind: "note/release", key: "created", value: packages };
  return Recorded.parse(isReadable(row) ? recordedValue(row) : {});
}

function shown({ holdfast, commit, sources }: Recorded): string {
  const parts = [commit && `commit ${commit}`, sources && `sources ${sources.slice(0, 12)}`];
  const known = parts.filter((part) => part !== undefined);
  return `Holdfast ${holdfast ?? "of an unknown version"}` +
    (known.length > 0 ? ` (${known.join(", ")})` : "");
}
