/**
 * Where engines die. How many appends a run makes, and what each of them holds, depends on the machine's speed, as rows of one
 * moment share an append: a moment is named by a row instead, so that a kill there finds the run at the same place.
 */
import type { JournalRow } from "../../engine/mod.ts";
import type { VersionNote } from "../../workers/mod.ts";
import type { MemoryStore, MemoryStoreOptions } from "../../testing/mod.ts";

export type Death = Pick<MemoryStoreOptions, "crash_after_appends" | "crash_after">;

const nameOf = ({ kind, key }: JournalRow): string => `${kind} ${key}`;

/** Once a row of this name is durable. */
export function onceDurable(name: string): Death {
  return { crash_after: (rows) => rows.some((row) => nameOf(row) === name) };
}

/** No death: the last row of every append, and every version, is added to `moments`. */
export function watched(moments: Set<string>): Death {
  return {
    crash_after: (rows) => {
      for (const row of rows) if (row.kind === "note/version" || row === rows.at(-1)) moments.add(nameOf(row));
      return false;
    },
  };
}

/** Versions of a model that are recorded and newer than its last checkpoint, or than its base: a start redoes them. */
export function unsavedOf(store: MemoryStore, model: "trainer" | "critic" = "trainer"): number {
  const rows = store.rows("run");
  const saved = new Set(rows.filter(({ kind }) => kind === "note/checkpoint").map(({ key }) => key));
  const versions = rows.filter(({ kind }) => kind === "note/version")
    .map(({ key, value }) => ({ key, ...JSON.parse(value) as VersionNote }))
    .filter(({ group = "trainer" }) => group === model);
  const { number = 0, model_path } = versions.at(-1) ?? {};
  const kept = versions.filter((version) => version.model_path === model_path && saved.has(version.key));
  return number - Math.max(0, ...kept.map((version) => version.number));
}
