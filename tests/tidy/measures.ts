/** What the house measures of itself. Each measure lists its findings, one line each. */
import type { SourceModule } from "./typescript_module.ts";

const FUNCTION_LINES_MAX = 70;
const FILE_LINES_MAX = 400;
const FOLDER_FILES_MAX = 25;
const COLUMNS_MAX = 100;
/**
 * A private function of so many lines that one place calls stands better in that place, unless its
 * name says more.
 */
const INLINED_LINES_MAX = 8;

/**
 * A tree of sources: texts and modules by path. `entries` are the files that people import or run.
 */
export type Tree = {
  texts: Map<string, string>;
  modules: Map<string, SourceModule>;
  entries: string[];
};

/** Rooms whose files are not the product. */
const NOT_PRODUCT = new Set(["tests", "bench", "examples"]);
const PYTHON_PACKAGE = "workers/python/holdfast_worker/";

const roomOf = (path: string): string => path.split("/")[0]!;
const stemOf = (path: string): string => path.split("/").at(-1)!.replace(/\.(ts|py)$/, "");
const linesOf = (text: string): string[] => text.replace(/\n$/, "").split("\n");

function edges(tree: Tree, path: string): string[] {
  const targets = tree.modules.get(path)!.imports.map(({ from }) => from);
  return [...new Set(targets)].filter((target) => tree.modules.has(target));
}

/** Files that can be reached from `start` by one import or more. */
function reached(tree: Tree, start: string): Set<string> {
  const seen = new Set<string>();
  const open = edges(tree, start);
  while (open.length > 0) {
    const path = open.pop()!;
    if (seen.has(path)) continue;
    seen.add(path);
    open.push(...edges(tree, path));
  }
  return seen;
}

/** Files that import each other, in one step or several; types count as values do. */
function filesInCycles(tree: Tree): string[] {
  const reach = new Map([...tree.modules.keys()].map((path) => [path, reached(tree, path)]));
  return [...reach].filter(([path, files]) => files.has(path)).map(([path, files]) => {
    const others = [...files].filter((other) => other !== path && reach.get(other)!.has(path));
    return `${path} with ${others.join(", ") || "itself"}`;
  });
}

/** Python folders whose files import each other's; a file that is in none stands for itself. */
function pythonRoomsInCycles(tree: Tree): string[] {
  const room = (path: string): string => {
    const parts = path.slice(PYTHON_PACKAGE.length).split("/");
    return parts.length > 1 ? `${parts[0]}/` : parts[0]!;
  };
  const ours = [...tree.modules.keys()].filter((path) => path.startsWith(PYTHON_PACKAGE));
  const rooms = new Map<string, SourceModule>();
  for (const path of ours) {
    const imports = edges(tree, path).filter((to) =>
      to.startsWith(PYTHON_PACKAGE) && room(to) !== room(path)
    );
    const known = rooms.get(room(path));
    const all = [
      ...(known?.imports ?? []),
      ...imports.map((to) => ({ from: room(to), names: [] })),
    ];
    rooms.set(room(path), { ...tree.modules.get(path)!, imports: all });
  }
  return filesInCycles({ ...tree, modules: rooms });
}

function longFunctions({ modules }: Tree): string[] {
  return [...modules.values()].flatMap(({ path, functions }) =>
    functions.filter(({ lines }) => lines > FUNCTION_LINES_MAX).map(({ name, line, lines }) =>
      `${path}:${line} ${name}: ${lines} lines`
    )
  );
}

/** A generated file is as long as what it is made of. */
const GENERATED = /^Generated from `[^`]+` by `deno task schema`\.$/m;

function longFiles({ texts }: Tree): string[] {
  return [...texts].flatMap(([path, text]) => {
    const { length } = linesOf(text);
    if (GENERATED.test(text)) return [];
    return length > FILE_LINES_MAX ? [`${path}: ${length} lines`] : [];
  });
}

function longLines({ texts }: Tree): string[] {
  return [...texts].flatMap(([path, text]) =>
    linesOf(text).flatMap((line, i) => [...line].length > COLUMNS_MAX ? [`${path}:${i + 1}`] : [])
  );
}

/** Where the test of a file may stand: as it is called, in the same folder of the tests. */
function mirrorsOf(path: string): string[] {
  if (path.startsWith(PYTHON_PACKAGE)) {
    const parts = path.slice(PYTHON_PACKAGE.length).replace(/\.py$/, "").split("/");
    const folder = ["tests/python", ...parts.slice(0, -1)].join("/");
    // pytest refuses two files of one name, so the name repeats the package.
    const names = new Set([parts.join("_"), parts.at(-1)!, `${parts[0]}_${parts.at(-1)}`]);
    return [...names].map((name) => `${folder}/test_${name}.py`);
  }
  return [`tests/${path.replace(/\.ts$/, "_test.ts")}`];
}

/**
 * Sources that a test file should mirror: those with something to run. A `mod.ts` or `__init__.py`
 * only passes names on.
 */
export function testable({ modules }: Tree): string[] {
  return [...modules.values()].filter(({ path, only_types }) =>
    path.includes("/") && !NOT_PRODUCT.has(roomOf(path)) && !only_types &&
    !["mod", "__init__"].includes(stemOf(path))
  ).map(({ path }) => path);
}

function unmirrored(tree: Tree): string[] {
  return testable(tree).filter((path) => !mirrorsOf(path).some((mirror) => tree.texts.has(mirror)));
}

/**
 * Names that a file offers, by way of `export *` too, each with the file and the name that it comes
 * from.
 */
function offered(
  tree: Tree,
  path: string,
  seen = new Set<string>(),
): Map<string, [path: string, name: string]> {
  const module = tree.modules.get(path);
  if (!module || seen.has(path)) return new Map();
  seen.add(path);
  const names = new Map<string, [string, string]>(
    module.stars.flatMap((star) => [...offered(tree, star, seen)]),
  );
  for (const name of [...module.exports, ...module.reexports.map(({ name }) => name)]) {
    names.set(name, [path, name]);
  }
  return names;
}

/**
 * Exports that no other file imports and that no entry point offers. A graph that a run finds again
 * by `MODULE#NAME` is used. A name that is only passed on counts where it is passed on.
 */
function deadExports(tree: Tree): string[] {
  const used = new Set<string>();
  const use = (path: string, name: string): void => {
    const [file, exportName] = offered(tree, path).get(name) ?? [path, name];
    if (used.has(`${file}: ${exportName}`)) return;
    used.add(`${file}: ${exportName}`);
    const passed = tree.modules.get(file)?.reexports.find((each) => each.name === exportName);
    if (passed) use(passed.from, passed.imported);
  };
  const useAll = (path: string) =>
    [...offered(tree, path).keys()].forEach((name) => use(path, name));
  tree.entries.forEach(useAll);
  for (const [path, text] of tree.texts) {
    for (const [, name] of text.matchAll(/import\.meta\.url\}#(\w+)/g)) use(path, name!);
  }
  for (const { imports } of tree.modules.values()) {
    for (const { from, names } of imports) {
      if (names === "all") useAll(from);
      else names.forEach((name) => use(from, name));
    }
  }
  return [...tree.modules.values()].flatMap(({ path, exports, reexports }) =>
    [...new Set([...exports, ...reexports.map(({ name }) => name)])].map((name) =>
      `${path}: ${name}`
    )
  ).filter((name) => !used.has(name));
}

/**
 * Imports of another room's file where that room has a `mod.ts`. Tests look at what they test and
 * do not count.
 */
function importsPastMod(tree: Tree): string[] {
  const counted = [...tree.modules.values()].filter(({ path }) =>
    path.endsWith(".ts") && roomOf(path) !== "tests"
  );
  return counted.flatMap(({ path, imports }) =>
    [...new Set(imports.map(({ from }) => from))].filter((from) =>
      roomOf(from) !== roomOf(path) && from !== `${roomOf(from)}/mod.ts` &&
      tree.modules.has(`${roomOf(from)}/mod.ts`)
    ).map((from) => `${path} imports ${from}`)
  );
}

/**
 * Data fields of object types in camelCase: options and records are snake_case in both languages.
 * Tests name what they test.
 */
function camelFields({ modules }: Tree): string[] {
  return [...modules.values()].filter(({ path }) => roomOf(path) !== "tests").flatMap((
    { path, camel_fields },
  ) => camel_fields.map(({ name, line }) => `${path}:${line} ${name}`));
}

/** `...{ a }` in an object and `...[a]` in a list. */
function literalSpreads({ modules }: Tree): string[] {
  return [...modules.values()].flatMap(({ path, literal_spreads }) =>
    literal_spreads.map((line) => `${path}:${line}`)
  );
}

/** Where undefined is ignored, `a: c ? value : undefined` says the same and reads better. */
function conditionalSpreads({ modules }: Tree): string[] {
  const counted = [...modules.values()].filter(({ path }) => roomOf(path) !== "tests");
  return counted.flatMap(({ path, conditional_spreads }) =>
    conditional_spreads.map((line) => `${path}:${line}`)
  );
}

function functionsCalledOnce({ modules }: Tree): string[] {
  const product = [...modules.values()].filter(({ path }) => !NOT_PRODUCT.has(roomOf(path)));
  return product.flatMap(({ path, called_once }) =>
    called_once.filter(({ lines }) => lines <= INLINED_LINES_MAX).map(({ name, line }) =>
      `${path}:${line} ${name}`
    )
  );
}

/** Folders with too many files to find one at a glance. */
function largeFolders({ texts }: Tree): string[] {
  const counts = new Map<string, number>();
  for (const path of texts.keys()) {
    const folder = path.split("/").slice(0, -1).join("/");
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > FOLDER_FILES_MAX).map(([folder, count]) =>
    `${folder}/: ${count} files`
  );
}

/** What a tree has none of. */
export const RULES: Record<string, (tree: Tree) => string[]> = {
  exports_that_nothing_imports: deadExports,
  fields_in_camel_case: camelFields,
  files_in_import_cycles: filesInCycles,
  functions_over_70_lines: longFunctions,
  imports_past_a_mod: importsPastMod,
  python_rooms_in_import_cycles: pythonRoomsInCycles,
  spreads_of_literals: literalSpreads,
};

/** What is only counted: `deno task tidy` shows it, and nothing fails within its limit, if any. */
export const COUNTS: Record<string, (tree: Tree) => string[]> = {
  conditional_object_spreads: conditionalSpreads,
  files_over_400_lines: longFiles,
  files_without_a_mirrored_test: unmirrored,
  folders_over_25_files: largeFolders,
  lines_over_100_columns: longLines,
  short_functions_called_once: functionsCalledOnce,
};

/** The most that a tree may have of what is counted. */
export const LIMITS: Record<string, number> = {
  conditional_object_spreads: 40,
};
