import { z } from "zod";
import { DataError } from "../errors.ts";

const [DICT, STATE, INFO] = ["dataset_dict.json", "state.json", "dataset_info.json"] as const;

const Name = z.string().regex(/^[^/\\]+$/, "expected the name of one file or directory");
const Files = z.array(z.looseObject({ filename: Name }));
const Dict = z.looseObject({ splits: z.array(Name).min(1) });
const State = z.looseObject({
  _data_files: z.array(z.looseObject({ filename: Name.endsWith(".arrow") })),
  // Of old versions (`datasets` 1.1): which rows a selection has, in their order.
  _indices_files: Files.nullish(),
  _indices_data_files: Files.nullish(),
});
const Info = z.looseObject({ features: z.record(z.string(), z.unknown()).nullish() });

/**
 * The files of a data set that `datasets.save_to_disk` wrote to a directory, in their order. Of a
 * directory of splits, its only one. Null: these names are no such directory's.
 * @throws {DataError} If there are several splits, or something is missing or damaged.
 */
export async function savedFiles(
  directory: string,
  names: readonly string[],
): Promise<string[] | null> {
  if (names.includes(DICT)) return await filesOf(await onlySplit(directory));
  const saved = names.includes(INFO) || names.some((name) => name.endsWith(".arrow"));
  return names.includes(STATE) && saved ? await filesOf(directory) : null;
}

async function onlySplit(directory: string): Promise<string> {
  const { splits } = await readAs(Dict, `${directory}/${DICT}`);
  if (splits.length === 1) return `${directory}/${splits[0]}`;
  throw new DataError(
    `it has ${splits.length} splits (${splits.join(", ")}); name one, as ${directory}/${splits[0]}`,
    { file: directory },
  );
}

async function filesOf(directory: string): Promise<string[]> {
  await readAs(Info, `${directory}/${INFO}`);
  const state = await readAs(State, `${directory}/${STATE}`);
  if (state._indices_files?.length || state._indices_data_files?.length) {
    throw new DataError(
      "its rows are a selection that an old version of `datasets` saved beside them, which cannot " +
        "be read; save it again: `load_from_disk(DIR).flatten_indices().save_to_disk(NEW)`",
      { file: directory },
    );
  }
  const files = state._data_files.map(({ filename }) => `${directory}/${filename}`);
  if (files.length === 0) {
    throw new DataError("the saved data set has no rows", { file: directory });
  }
  for (const file of files) {
    if (await isThere(file)) continue;
    throw new DataError(`the file is missing, and ${STATE} names it; copy the directory again`, {
      file,
    });
  }
  return files;
}

async function readAs<T>(schema: z.ZodType<T>, path: string): Promise<T> {
  if (!await isThere(path)) {
    throw new DataError(
      "the file is missing, which `datasets.save_to_disk` writes beside the rows; copy the " +
        "directory again",
      { file: path },
    );
  }
  const text = await Deno.readTextFile(path);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(`it is not JSON: ${(error as Error).message}`, path);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw damaged([...issue!.path, issue!.message].join(" "), path);
}

function damaged(why: string, file: string): DataError {
  return new DataError(
    `it is not as \`datasets.save_to_disk\` writes it (${why}); copy the directory again`,
    { file },
  );
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
