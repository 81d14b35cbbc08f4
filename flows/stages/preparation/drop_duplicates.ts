import { z } from "zod";
import { HASH_BYTES, HashSet, PreparedSource, writtenTypes } from "../../../data/mod.ts";
import { type ArtifactStore, BadDataError, defineStage, type Stage } from "../../../engine/mod.ts";
import {
  ColumnTypesRecord,
  Drops,
  type Part,
  placesKept,
  rowsOfPart,
  ThinnedPart,
} from "../../files/prepared_part.ts";
import { joined, ReadInput } from "./read_input.ts";

const Input = z.strictObject({
  files: z.array(ReadInput),
  inputs: z.array(PreparedSource),
  deduplicate: z.enum(["none", "prompt", "row"]),
});
/** @internal */
type Input = z.input<typeof Input>;

const /** @internal */ uniqueRowsSchema = z.strictObject({
  parts: z.array(ThinnedPart),
  types: ColumnTypesRecord.describe("Of each column, over all files."),
});
/** The parts of all files without their duplicates. */
export type UniqueRows = z.infer<typeof uniqueRowsSchema>;
/** Schema of {@linkcode UniqueRows}. */
export const UniqueRows: typeof uniqueRowsSchema = uniqueRowsSchema;

/**
 * Drops every row that an earlier one equals, in the order of files and rows, and refuses an id
 * that two rows have. Holds the hashes of rows alone. Writes artifacts alone: safe to run twice.
 */
export const dropDuplicates: Stage<Input, UniqueRows> = defineStage({
  name: "drop_duplicates",
  version: 1,
  input: Input,
  output: UniqueRows,
  async run({ files, inputs, deduplicate }, ctx) {
    for (const [i, { keep }] of inputs.entries()) {
      refuseAbsent(keep, files.filter(({ item, parts }) => item.input === i && parts.length > 0));
    }
    const { artifacts } = ctx;
    const types = writtenTypes(files.map((file) => file.types).reduce(joined, {}));
    const rows = files.flatMap((file) => file.parts).reduce((sum, { count }) => sum + count, 0);
    const seen = new HashSet(deduplicate === "none" ? 0 : rows);
    const ids = new HashSet(rows);
    const parts: ThinnedPart[] = [];
    for (const { item: { name }, types: shown, parts: fileParts } of files) {
      const counts = Object.values(shown).some(({ place }) => place.line !== undefined)
        ? "line" as const
        : "row" as const;
      for (const { hashes: ref, ...part } of fileParts) {
        const hashes = await artifacts.get(ref);
        const drops = new Drops();
        const places: number[] = [];
        for (let place = 0; place < part.count; place++) {
          const [what, id] = hashesAt(hashes, place);
          if (deduplicate !== "none" && !seen.add(what)) places.push(place);
          else if (!ids.add(id)) throw await sameId(files, { part, place, id, artifacts });
        }
        await nameDropped(drops, { part, places, file: name, by: deduplicate, artifacts });
        const left_out = await placesKept(places, ctx);
        const from = { file: name, counts };
        parts.push({ ...part, ...left_out, dropped: drops.counts, named: drops.named, from });
      }
    }
    return { parts, types };
  },
});

/** A column that no row of an input has is a wrong name. */
function refuseAbsent(keep: PreparedSource["keep"], files: readonly ReadInput[]): void {
  const absent = Object.entries(keep).find(([name]) =>
    files.length > 0 && !files.some(({ types }) => name in types)
  );
  if (absent === undefined) return;
  const [name, field] = absent;
  const [{ item: { name: first } }] = files as [ReadInput];
  const where = files.length === 1 ? first : `${first} or ${files.length - 1} more files`;
  throw new BadDataError(
    `Cannot keep '${field}' as '${name}' because no row of ${where} has it. Fix: correct the ` +
      "name in `keep`, or remove it",
    { field, file: first },
  );
}

function hashesAt(hashes: Uint8Array, place: number): [what: Uint8Array, id: Uint8Array] {
  const at = 2 * HASH_BYTES * place;
  const middle = at + HASH_BYTES;
  return [hashes.subarray(at, middle), hashes.subarray(middle, middle + HASH_BYTES)];
}

type Naming = {
  part: Pick<Part, "rows">;
  places: readonly number[];
  file: string;
  by: Input["deduplicate"];
  artifacts: ArtifactStore;
};

async function nameDropped(
  drops: Drops,
  { part, places, file, by, artifacts }: Naming,
): Promise<void> {
  if (places.length === 0) return;
  const dropped = new Set(places);
  const because = `an earlier row has the same ${by === "prompt" ? "prompt" : "content"}`;
  for await (const { row, place } of rowsOfPart(part, { artifacts })) {
    if (dropped.has(place)) drops.add({ file, row: row.number, reason: "duplicate", because });
  }
}

type Found = {
  part: Pick<Part, "rows" | "file">;
  place: number;
  id: Uint8Array;
  artifacts: ArtifactStore;
};

/** The error that names both rows with an id. */
async function sameId(
  files: readonly ReadInput[],
  { part, place: again, id, artifacts }: Found,
): Promise<BadDataError> {
  const rowAt = async (of: Pick<Part, "rows">, wanted: number) => {
    for await (const { row, place } of rowsOfPart(of, { artifacts })) {
      if (place === wanted) return row;
    }
    throw new RangeError(`Cannot find row ${wanted} of a part`);
  };
  const first = async () => {
    for (const { item: { name }, parts } of files) {
      for (const one of parts) {
        const hashes = await artifacts.get(one.hashes);
        for (let place = 0; place < one.count; place++) {
          if (!hashesAt(hashes, place)[1].every((byte, i) => byte === id[i])) continue;
          return `${name} row ${(await rowAt(one, place)).number}`;
        }
      }
    }
  };
  const { row_id, number: row } = await rowAt(part, again);
  const file = files.find(({ item }) => item.file === part.file)!.item.name;
  return new BadDataError(
    `Cannot prepare ${file} row ${row} because its id '${row_id}' already belongs to ` +
      `${await first()}. Fix: give each input a \`name\`, which is put before its ids; or set ` +
      "`ids: content`, `fields: { id: NAME }`, or `deduplicate: row` if the rows are equal; then " +
      "start a new run",
    { row_id, file, row },
  );
}
