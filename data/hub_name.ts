/**
 * A model or data set at the Hugging Face Hub: `OWNER/NAME[@REVISION[@COMMIT]]`. A run records the
 * commit that a revision meant when the run was created. `commit`: null until then.
 */
type HubName = { repository: string; revision: string; commit: string | null };

const NAME = /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9_][\w.-]*)(?:@([^@\s]+))?(?:@([0-9a-f]{40}))?$/;
const COMMIT = /^[0-9a-f]{40}$/;

/** Reads a name at the hub; null: the text is not one. */
export function hubName(text: string): HubName | null {
  const [, repository, revision = "main", commit] = NAME.exec(text) ?? [];
  if (repository === undefined) return null;
  return { repository, revision, commit: commit ?? (COMMIT.test(revision) ? revision : null) };
}

/** The whole name, by which two spellings of one repository are the same. */
export function hubNameText({ repository, revision, commit }: HubName): string {
  const pinned = commit === null || commit === revision ? "" : `@${commit}`;
  return `${repository}@${revision}${pinned}`;
}
