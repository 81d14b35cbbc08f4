import { type Config, loadConfig } from "../../configs/mod.ts";
import {
  firstColumns,
  isPreference,
  type LoadedRows,
  loadRows,
  type RowTable,
} from "../../data/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { pinnedData } from "../session/hub_models.ts";
import { rowTables } from "../session/row_tables.ts";

/**
 * Rows that a command names. `split`: null: they are a data file's. `files`: absent: they are
 * generated.
 */
export type NamedRows = {
  split: string | null;
  table: RowTable & Partial<Pick<LoadedRows, "files">>;
};

/** The configuration that a command names instead of a data file; null: it names a file. */
export async function namedConfig(
  path: string,
  overrides: string[] = [],
): Promise<Config | null> {
  if (!/\.ya?ml$/i.test(path)) return null;
  // What else it names, such as a model, need not be there yet.
  const options = { overrides, cwd: Deno.cwd(), files_missing: true };
  return (await loadConfig(path, options)).config;
}

/**
 * The rows of a data file, a directory, a pattern or a data set of the hub, or each split of a
 * configuration (a name that ends in `.yaml` or `.yml`) as its run reads it. `say`: learns what is
 * fetched from the hub.
 * @throws {InvalidInputError} If a configuration has no rows, or a data file is given overrides.
 */
export async function namedRows(
  path: string,
  { home, overrides = [], say }: {
    home: string;
    overrides?: string[];
    say?: (text: string) => void;
  },
): Promise<NamedRows[]> {
  const fetching = {
    say,
    onSetup: ({ text }: { text: string }) => say?.(text),
    download: true,
  };
  const config = await namedConfig(path, overrides);
  if (config !== null) {
    const data = await pinnedData(config, fetching);
    const tables = await rowTables(data.config, { home });
    const splits = Object.entries(tables).map(([split, table]) => ({ split, table }));
    if (splits.length > 0) return splits;
    throw new InvalidInputError(
      `Cannot read rows of ${path} because it has no \`data\` and no \`task\`. Fix: add data.train`,
      { path },
    );
  }
  if (overrides.length > 0) {
    throw new InvalidInputError(
      `Cannot use ${
        overrides.join(" ")
      } because ${path} is a data file. Fix: leave the overrides ` +
        "out, or give a configuration",
      { path, overrides },
    );
  }
  const { config: { data } } = await pinnedData({ data: { train: [{ path }] } }, fetching);
  const first = await firstColumns(data.train[0]!);
  // With `chosen` and `rejected`, rows are read as the preference flow would read them.
  const needs = first !== null && isPreference(first) ? "preference" : undefined;
  return [{ split: null, table: await loadRows(data.train, { home, needs }) }];
}
