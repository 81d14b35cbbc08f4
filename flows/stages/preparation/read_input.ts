import { z } from "zod";
import { PreparedNeeds } from "../../../configs/mod.ts";
import {
  clashText,
  type ColumnTypes,
  DataError,
  digestFile,
  type FileRow,
  fileRows,
  HASH_BYTES,
  hashOf,
  hostPath,
  preparedColumns,
  type PreparedRow,
  preparedRow,
  PreparedSource,
  type RowMapper,
  rowMapper,
  type Sameness,
  sameness,
  type SourceFile,
  TypeClash,
  typeOf,
  unifiedColumn,
} from "../../../data/mod.ts";
import { type ArtifactStore, BadDataError, defineStage, type Stage } from "../../../engine/mod.ts";
import {
  added,
  asSourceFile,
  ColumnTypesRecord,
  Dropped,
  DroppedRow,
  Drops,
  errorAt,
  InputFile,
  linesOfRows,
  Part,
  stemOf,
} from "../../files/prepared_part.ts";

const Input = z.strictObject({
  item: InputFile,
  inputs: z.array(PreparedSource),
  needs: PreparedNeeds,
  on_bad_row: z.enum(["refuse", "drop"]),
  deduplicate: z.enum(["none", "prompt", "row"]),
});
type Input = z.output<typeof Input>;
/** @internal */
type RawInput = z.input<typeof Input>;

const /** @internal */ readInputSchema = z.strictObject({
  item: InputFile,
  read: z.int(),
  dropped: Dropped,
  named: z.array(DroppedRow),
  types: ColumnTypesRecord,
  parts: z.array(Part),
});
/** A file that was read: its parts, and what was dropped on the way. */
export type ReadInput = z.infer<typeof readInputSchema>;
/** Schema of {@linkcode ReadInput}. */
export const ReadInput: typeof readInputSchema = readInputSchema;

/** Of one part: the durable steps in which a file is read. */
const PART_ROWS_MAX = 4096;
const PART_CHARACTERS_MAX = 8 * 1024 * 1024;

/**
 * Reads and maps the rows of one file, part by part: each part is recorded, and a resume continues
 * after the last one. Writes artifacts alone: safe to run twice.
 */
export const readInput: Stage<RawInput, ReadInput> = defineStage({
  name: "read_input",
  version: 1,
  input: Input,
  output: ReadInput,
  runs_on: "data",
  async run(input, ctx) {
    const { item } = input;
    if ((await digestFile(hostPath(item.path))).sha256 !== item.sha256) {
      throw new BadDataError(
        `Cannot read ${item.name} because the file has changed since the run started. Fix: ` +
          "restore it and resume, or start a new run",
        { path: item.path },
      );
    }
    const source = input.inputs[item.input]!;
    const map = rowMapper(source, input.needs);
    const reading = { input, source, map, artifacts: ctx.artifacts };
    using rows = new RowsFrom(await asSourceFile(item, source));
    const parts: ReadPart[] = [];
    let from = 0;
    do {
      const id = `${item.file}.${parts.length}`;
      const read = await ctx.step("part", () => readPart(rows, { id, from, ...reading }));
      ctx.emit({ progress: { done: from + read.read, phase: item.name } });
      from += read.read;
      parts.push(read);
    } while (!parts.at(-1)!.last);
    return {
      item,
      read: from,
      dropped: parts.map(({ dropped }) => dropped).reduce(added, {}),
      named: parts.flatMap(({ named }) => named),
      types: parts.map(({ types }) => types).reduce(joined),
      parts: parts.flatMap(({ part }) => part ?? []),
    };
  },
});

type ReadPart = {
  read: number;
  last: boolean;
  part: Part | null;
  dropped: Dropped;
  named: DroppedRow[];
  types: ColumnTypes;
};

/** The rows of a file, opened at the first use: those that were recorded earlier are skipped. */
class RowsFrom implements Disposable {
  readonly #rows: AsyncGenerator<FileRow>;
  #next = 0;

  constructor(file: SourceFile) {
    this.#rows = fileRows(file);
  }

  /** The row at this place, which rises from call to call; null: there is none. */
  async at(place: number): Promise<FileRow | null> {
    for (;;) {
      const { value, done } = await this.#rows.next();
      if (done) return null;
      if (this.#next++ === place) return value;
    }
  }

  [Symbol.dispose](): void {
    void this.#rows.return(undefined);
  }
}

type Reading = {
  input: Input;
  source: PreparedSource;
  map: RowMapper;
  artifacts: ArtifactStore;
};

async function readPart(
  rows: RowsFrom,
  { id, from, ...reading }: Reading & { id: string; from: number },
): Promise<ReadPart> {
  const drops = new Drops();
  const kept: PreparedRow[] = [];
  let types: ColumnTypes = {};
  let [read, characters, last] = [0, 0, false];
  while (kept.length < PART_ROWS_MAX && read < 2 * PART_ROWS_MAX) {
    const row = await rows.at(from + read);
    last = row === null;
    if (row === null) break;
    read++;
    const mapped = mappedRow(row, { ...reading, drops });
    if (mapped === null) continue;
    types = joined(types, typesOfRow(mapped, { ...reading, row }));
    kept.push(mapped);
    characters += JSON.stringify(mapped).length;
    if (characters >= PART_CHARACTERS_MAX) break;
  }
  const part = kept.length === 0 ? null : await keptPart(kept, { id, ...reading });
  return { read, last, part, dropped: drops.counts, named: drops.named, types };
}

type Mapping = Reading & { drops: Drops };

function mappedRow(row: FileRow, { input, source, map, drops }: Mapping): PreparedRow | null {
  const { place } = row;
  const at = { file: input.item.name, row: place.line ?? place.row! };
  try {
    if ("problem" in row) throw row.problem;
    const mapped = map(row.columns, place);
    if (mapped !== null) return preparedRow(mapped, place);
    const because = [
      ...(source.answer_as === "boxed" ? ["no \\boxed{} in its answer"] : []),
      ...(source.answer_as === "number" ? ["an answer that is not one number"] : []),
      ...(source.dialogue === "human_assistant" ? ["a text that is no dialogue"] : []),
    ].join(", or ");
    drops.add({ ...at, reason: "mapped_to_nothing", because });
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    if (input.on_bad_row === "refuse") throw error;
    drops.add({
      ...at,
      reason: "unreadable",
      because: error.message.replace(place.file, at.file),
    });
  }
  return null;
}

type Typing = Reading & { row: FileRow };

function typesOfRow(mapped: PreparedRow, { input, source, row: { place } }: Typing): ColumnTypes {
  const { name } = input.item;
  const data_source = source.name ?? stemOf(name);
  const columns = preparedColumns(mapped, { data_source, file: name, split: "" });
  const types: ColumnTypes = {};
  for (const [column, value] of Object.entries(columns)) {
    const at = {
      file: name,
      ...(place.line === undefined ? { row: place.row } : { line: place.line }),
    };
    try {
      types[column] = { type: typeOf(value, column), place: at };
    } catch (error) {
      if (error instanceof TypeClash) {
        throw new DataError(clashText(error, at), { ...at, field: error.field });
      }
      throw error instanceof RangeError ? errorAt(error.message, name, place) : error;
    }
  }
  return types;
}

/**
 * The types of the columns that either has.
 * @throws {DataError} If a column has two.
 */
export function joined(before: ColumnTypes, now: ColumnTypes): ColumnTypes {
  const both = { ...before };
  for (const [column, { type, place }] of Object.entries(now)) {
    const known = both[column];
    try {
      const all = known === undefined ? type : unifiedColumn(column, known.type, type);
      const first = known === undefined || known.type.is === "null" ? place : known.place;
      both[column] = { type: all, place: first };
    } catch (error) {
      if (!(error instanceof TypeClash)) throw error;
      throw new DataError(clashText(error, known!.place), { ...place, field: error.field });
    }
  }
  return both;
}

type Keeping = Reading & { id: string };

async function keptPart(rows: PreparedRow[], { id, input, artifacts }: Keeping): Promise<Part> {
  const { item: { file }, deduplicate } = input;
  const by: Sameness = deduplicate === "prompt" ? "prompt" : "row";
  const hashes = new Uint8Array(2 * HASH_BYTES * rows.length);
  for (const [i, row] of rows.entries()) {
    hashes.set(sameness(row, by), 2 * HASH_BYTES * i);
    hashes.set(hashOf(row.row_id), 2 * HASH_BYTES * i + HASH_BYTES);
  }
  const refs = {
    rows: await artifacts.put(linesOfRows(rows)),
    hashes: await artifacts.put(hashes),
  };
  return { id, file, ...refs, count: rows.length };
}
