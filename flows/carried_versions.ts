import { Policy } from "../data/mod.ts";
import { type ArtifactStore, type NewRow, type RoundRecord, rowValue } from "../engine/mod.ts";

/** A closed round and the versions of the policies that it handed on. */
export type ClosedRound = { loop: string; round: number; versions: string[] };

/** What a `round` row says of policies; null for a row of another kind, or of a loop inside something else. */
export async function closedRound(artifacts: ArtifactStore, row: NewRow): Promise<ClosedRound | null> {
  const [, loop, round] = /^([^/]+)\/(\d+)$/.exec(row.key) ?? [];
  if (row.kind !== "round" || loop === undefined) return null;
  const { carried } = await rowValue(artifacts, row) as RoundRecord;
  const versions = Object.values(carried).flatMap((value) => Policy.safeParse(value).data?.version ?? []);
  return { loop, round: Number(round), versions: [...new Set(versions)] };
}
