/**
 * Where engines die. How many appends a run makes, and what each of them holds, depends on the
 * machine's speed, as rows of one moment share an append: a moment is named by a row instead, so
 * that a kill there finds the run at the same place.
 */
import { type JournalRow, sha256Hex } from "../../../engine/mod.ts";
import type { VersionNote } from "../../../workers/mod.ts";
import type { MemoryStore, MemoryStoreOptions } from "../../../testing/mod.ts";

export type Death = Pick<MemoryStoreOptions, "crash_after">;

const nameOf = ({ kind, key }: JournalRow): string => `${kind} ${key}`;

/** Once a row of this name is durable. */
export function onceDurable(name: string): Death {
  return { crash_after: (rows) => rows.some((row) => nameOf(row) === name) };
}

/** No death: every row is added to `moments`. */
export function watched(moments: Set<string>): Death {
  return {
    crash_after: (rows) => {
      for (const row of rows) moments.add(nameOf(row));
      return false;
    },
  };
}

/** Versions and checkpoints: what a start loads or redoes is decided there. */
const DECISIVE = /^note\/(version|checkpoint) /;

/**
 * The rows after which engines are killed: the decisive ones, and `count` of the others. Which
 * ones depends on the seed and on the names, not on the order in which they came.
 */
export function killPoints(
  moments: readonly string[],
  { seed, count }: { seed: number; count: number },
): string[] {
  const place = (name: string) => sha256Hex(`${seed} ${name}`);
  const others = moments.filter((name) => !DECISIVE.test(name));
  const drawn = others.toSorted((a, b) => (place(a) < place(b) ? -1 : 1)).slice(0, count);
  return [...moments.filter((name) => DECISIVE.test(name)).toSorted(), ...drawn];
}

/**
 * Versions of a model that are recorded and newer than its last checkpoint, or than its base: a
 * start redoes them.
 */
export function unsavedOf(store: MemoryStore, model: "trainer" | "critic" = "trainer"): number {
  const rows = store.rows("run");
  const saved = new Set(
    rows.filter(({ kind }) => kind === "note/checkpoint").map(({ key }) => key),
  );
  const versions = rows.filter(({ kind }) => kind === "note/version")
    .map(({ key, value }) => ({ key, ...JSON.parse(value) as VersionNote }))
    .filter(({ group = "trainer" }) => group === model);
  const { number = 0, model_path } = versions.at(-1) ?? {};
  const kept = versions.filter((version) =>
    version.model_path === model_path && saved.has(version.key)
  );
  return number - Math.max(0, ...kept.map((version) => version.number));
}
