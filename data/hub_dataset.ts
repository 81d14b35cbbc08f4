import { basename } from "node:path";
import { DataError } from "./errors.ts";
import { hubName, hubNameText } from "./hub_name.ts";

/** What is read of a data set: files by a pattern, or a split of a subset. null: not said. */
export type DatasetPart = { files: string | null; subset: string | null; split: string | null };

/** A part of a data set at the Hugging Face Hub. `name`: `OWNER/NAME@REVISION[@COMMIT]`. */
type HubDataset = { name: string; part: DatasetPart };

const SCHEME = "hf://";
const REVISION = "refs\\/(?:convert|pr)\\/[^/?@\\s]+|[^/?@\\s]+";
const FORM = RegExp(
  `^hf://datasets/([^/?@\\s]+/[^/?@\\s]+(?:@(?:${REVISION}))?(?:@[0-9a-f]{40})?)(?:/([^?]+))?(?:\\?(.*))?$`,
);
const FORMS = "hf://datasets/OWNER/NAME@REVISION, with ?subset=NAME&split=NAME or /FILES after it";

/** Whether a source is at the hub: no path begins in this way. */
export function isHubDataset(path: string): boolean {
  return path.startsWith(SCHEME);
}

/**
 * Reads the name of a source at the hub: `hf://datasets/OWNER/NAME[@REVISION[@COMMIT]]`, and then
 * `/FILES` or `?subset=NAME&split=NAME`. The scheme and what may follow the name up to `FILES` are
 * those of `huggingface_hub`'s file system.
 * @throws {DataError} If it is not of this form.
 */
export function hubDataset(text: string): HubDataset {
  const [, named = "", files = null, query = null] = FORM.exec(text) ?? [];
  const name = hubName(named);
  if (name === null) throw wrong(text, "it is not a data set of the hub");
  const part: DatasetPart = { files, subset: null, split: null };
  for (const field of query?.split("&") ?? []) {
    const [, key, value] = /^(subset|split)=(.+)$/.exec(field) ?? [];
    if (key === undefined) throw wrong(text, `'${field}' is neither subset=NAME nor split=NAME`);
    if (part[key as "subset" | "split"] !== null) throw wrong(text, `it has two of '${key}'`);
    part[key as "subset" | "split"] = decoded(value!, text);
  }
  if (files !== null && query !== null) throw wrong(text, "files have no subset and no split");
  return { name: hubNameText(name), part };
}

/** The whole text, by which two spellings of one part are the same. */
export function hubDatasetText({ name, part: { files, subset, split } }: HubDataset): string {
  const parameters = Object.entries({ subset, split }).flatMap(([key, value]) =>
    value === null ? [] : [`${key}=${encodeURIComponent(value)}`]
  );
  const query = parameters.length === 0 ? "" : `?${parameters.join("&")}`;
  return `${SCHEME}datasets/${name}${files === null ? "" : `/${files}`}${query}`;
}

/** What else a path without a file may mean: a name of the hub has no ending. */
export function hubHint(path: string): string {
  if (basename(path).includes(".")) return "";
  return "; a data set of the hub is named hf://datasets/OWNER/NAME";
}

function decoded(value: string, text: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw wrong(text, `'${value}' has a % that is none of an encoding`);
  }
}

function wrong(text: string, why: string): DataError {
  return new DataError(`${why}; write ${FORMS}`, { file: text });
}
