/**
 * `verify`: redoes what a run recorded on separate workers and compares every version with its
 * record.
 */
import type { Policy } from "../data/mod.ts";
import {
  type ArtifactStore,
  InvalidInputError,
  type JournalRow,
  recordedAs,
  RemadeDifferentlyError,
  removeTree,
  type RunHead,
  type Store,
} from "../engine/mod.ts";
import { type Caller, type PolicyTrainer, VersionNote } from "../workers/mod.ts";
import { closedRound } from "./forks/carried_versions.ts";
import { OWN_NAMES } from "../flows/mod.ts";
import { readTakenOver, recordedDigests, residentRows } from "./forks/lineage.ts";

/**
 * `steps`: loss and gradient norm of each optimizer step, bit for bit. `digest`: over the weights,
 * if one was recorded.
 */
export type VerifiedVersion = {
  version: string;
  /** The worker group that trained it; absent: the policy's. */
  group?: string;
  /** Trained batches since the base. */
  number: number;
  /** The round that ended with this policy; null: none. */
  round: string | null;
  steps: "equal" | "different";
  digest: "equal" | "different" | "not_recorded";
  recorded_digest: string | null;
  redone_digest: string | null;
  /** The reason, if something differs. */
  detail: string | null;
};
/** The results of redoing a run's versions. */
export type Verified = { run: string; equal: boolean; versions: VerifiedVersion[] };

/** A version according to the journal. */
export type Recorded = {
  policy: Policy;
  group?: string;
  round: string | null;
  digest: string | null;
};
/** The workers that redo versions of a group. */
type Redoing = Pick<PolicyTrainer, "publish">;

type RedoOptions = {
  trainer: Redoing;
  /** The value model's trainer, if the run has one. */
  critic?: Redoing;
  /** The directory in which weights are written, one version at a time, and removed again. */
  dir: string;
  onVersion?: (version: VerifiedVersion) => void;
};

type WhichVersions = {
  artifacts: ArtifactStore;
  /** Versions with fewer trained batches are redone but not compared. */
  from?: number;
};

/** Rows that a redo may read: no checkpoints, because they would be trusted instead of redone. */
export async function rowsToRedo(store: Store, head: RunHead): Promise<JournalRow[]> {
  return (await residentRows(store, head)).filter(({ kind }) =>
    !kind.startsWith("note/checkpoint")
  );
}

/**
 * Redoes every recorded version in order and compares it. Ends at the first that differs, because
 * all later ones depend on it. Only reads: the run may be running, ended or failed.
 * @throws {InvalidInputError} If nothing was trained, or `from` is beyond the last version.
 */
export async function verifyVersions(
  store: Store,
  head: RunHead,
  options: RedoOptions & WhichVersions,
): Promise<Verified> {
  return await redoVersions(head, await versionsToRedo(store, head, options), options);
}

/** {@linkcode verifyVersions} for versions that were already read. */
export async function redoVersions(
  head: RunHead,
  recorded: readonly Recorded[],
  options: RedoOptions,
): Promise<Verified> {
  const versions: VerifiedVersion[] = [];
  for (const one of recorded) {
    // A base without a recorded digest.
    if (one.policy.number === 0 && one.digest === null) continue;
    const verified = await verifyOne(one, options);
    versions.push(verified);
    options.onVersion?.(verified);
    if (isDifferent(verified)) return { run: head.id, equal: false, versions };
  }
  return { run: head.id, equal: true, versions };
}

/**
 * The recorded versions with `from` trained batches or more, in order.
 * @throws {InvalidInputError} If there is none.
 */
export async function versionsToRedo(
  store: Store,
  head: RunHead,
  { artifacts, from = 0 }: WhichVersions,
): Promise<Recorded[]> {
  const recorded = await recordedVersions(store, { head, artifacts });
  const wanted = recorded.filter(({ policy }) => policy.number >= from);
  if (wanted.length === 0) throw nothingToVerify(head, from);
  return wanted;
}

async function verifyOne(
  { policy, group, round, digest }: Recorded,
  options: RedoOptions,
): Promise<VerifiedVersion> {
  const { version, number } = policy;
  const known = { version, group, number, round, recorded_digest: digest };
  const trainer = group === undefined ? options.trainer : options.critic!;
  const dir = `${options.dir}/redone/${version.slice(0, 16)}`;
  // What recovery would record does not belong to the run, which itself lost nothing.
  const caller: Caller = { key: `verify/${number}`, attempt: 1, record: () => Promise.resolve() };
  try {
    const { digest: redone } = await trainer.publish(policy, dir, caller);
    const equal = digest === null ? "not_recorded" : digest === redone ? "equal" : "different";
    const detail = equal === "different"
      ? "the weights differ, although loss and gradient norm are equal"
      : null;
    return { ...known, steps: "equal", digest: equal, redone_digest: redone, detail };
  } catch (error) {
    if (!(error instanceof RemadeDifferentlyError)) throw error;
    return {
      ...known,
      steps: "different",
      digest: "not_recorded",
      redone_digest: null,
      detail: error.message,
    };
  } finally {
    await removeTree(dir, { home: options.dir, named: OWN_NAMES.weights, owner: null });
  }
}

function isDifferent({ steps, digest }: VerifiedVersion): boolean {
  return steps === "different" || digest === "different";
}

async function recordedVersions(
  store: Store,
  { head, artifacts }: { head: RunHead; artifacts: ArtifactStore },
): Promise<Recorded[]> {
  const digests = await recordedDigests(store, head);
  const rounds = new Map<string, string>();
  const query = { kinds: ["round" as const] };
  for (
    const row of [...await readTakenOver(store, head, query), ...await store.read(head.id, query)]
  ) {
    for (const version of (await closedRound(artifacts, row))?.versions ?? []) {
      if (!rounds.has(version)) rounds.set(version, row.key);
    }
  }
  const found = new Map<string, Recorded>();
  for (const row of await residentRows(store, head)) {
    if (row.kind !== "note/version") continue;
    const version = row.key;
    const { group, record, model_path, number, start } = recordedAs(row, VersionNote.parse);
    // It was not trained, and it may have the same weights as the start and so the same name.
    if (group === "reference") continue;
    const policy = { version, record, number, model_path };
    const digest = digests.get(version) ?? start?.checkpoint.digest ?? null;
    const facts = { round: rounds.get(version) ?? null, digest };
    found.set(version, { policy, group, ...facts });
  }
  return [...found.values()];
}

function nothingToVerify({ id }: RunHead, from: number): InvalidInputError {
  const why = from === 0
    ? "it has recorded no policy version yet"
    : `it has no version with ${from} or more batches`;
  return new InvalidInputError(`Cannot verify run '${id}' because ${why}`, { run: id, from });
}
