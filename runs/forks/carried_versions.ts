import { Policy } from "../../data/mod.ts";
import { type ArtifactStore, type NewRow, recordedRound, rowValue } from "../../engine/mod.ts";

/**
 * A closed round and the versions of the models that it passed on; `carried`: by the name under
 * which it passed them on.
 */
export type ClosedRound = {
  loop: string;
  round: number;
  versions: string[];
  carried: Record<string, string>;
};

/** The models in a `round` row; null for a row of a different kind, or of a nested loop. */
export async function closedRound(
  artifacts: ArtifactStore,
  row: NewRow,
): Promise<ClosedRound | null> {
  const [, loop, round] = /^([^/]+)\/(\d+)$/.exec(row.key) ?? [];
  if (row.kind !== "round" || loop === undefined) return null;
  const { carried } = recordedRound(row, await rowValue(artifacts, row));
  const named = Object.entries(carried).flatMap(([name, value]) => {
    const policy = Policy.safeParse(value);
    return policy.success ? [[name, policy.data.version] as const] : [];
  });
  const versions = [...new Set(named.map(([, version]) => version))];
  return { loop, round: Number(round), versions, carried: Object.fromEntries(named) };
}
