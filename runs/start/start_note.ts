import { z } from "zod";
import { ArtifactRef } from "../../data/mod.ts";
import { recordedAs, type RunHead, type Store } from "../../engine/mod.ts";
import { Recorded } from "../session/release.ts";

const /** @internal */ startNoteSchema = z.strictObject({
  run: z.string(),
  loop: z.string(),
  round: z.int().positive().describe("The last round that the other run made."),
  release: Recorded.unwrap().strict().describe("The release of the other run."),
  models: z.record(
    z.string(),
    z.strictObject({
      version: z.string(),
      number: z.int(),
      record: ArtifactRef,
      digest: z.string().describe("Over the weights of its checkpoint."),
    }),
  ).describe("By the name under which a round passes them on."),
  draws: z.record(z.string(), z.number()).describe("The ledger's totals up to that round."),
});
/** Value of a `note/start` row: where a run has started. Its key is the other run's id. */
export type StartNote = z.infer<typeof startNoteSchema>;
/** Schema of {@linkcode StartNote}. */
export const StartNote: typeof startNoteSchema = startNoteSchema;

/** Where a run has started; null: from a model. */
export async function startOf(
  store: Store,
  { id }: Pick<RunHead, "id">,
): Promise<StartNote | null> {
  const [row] = await store.read(id, { kinds: ["note/start"], limit: 1 });
  return row === undefined ? null : recordedAs(row, StartNote.parse);
}
