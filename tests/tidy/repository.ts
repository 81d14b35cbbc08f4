/** The repository as the measures read it. */
import { fileURLToPath } from "node:url";
import { findPython } from "../../workers/mod.ts";
import type { Tree } from "./measures.ts";
import { type SourceModule, typescriptModule } from "./typescript_module.ts";

const NOT_OURS = new Set([".git", ".holdfast", "node_modules", "models", "datasets"]);
const PYTHON_ROOTS = ["workers/python", "tests/algs/drivers", "."];
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const READER = fileURLToPath(new URL("./python_modules.py", import.meta.url));

function sources(root: string, dir = ""): string[] {
  const entries = [...Deno.readDirSync(`${root}/${dir}`)].toSorted((
    a,
    b,
  ) => (a.name < b.name ? -1 : 1));
  return entries.flatMap(({ name, isDirectory }) => {
    if (isDirectory) return NOT_OURS.has(name) ? [] : sources(root, `${dir}${name}/`);
    return /\.(ts|py)$/.test(name) ? [`${dir}${name}`] : [];
  });
}

type PythonModule = { path: string; imports: string[]; functions: SourceModule["functions"] };

/** What a dotted name may begin under: Python's tests import files of each other's folders. */
function pythonRoots(paths: string[]): string[] {
  const tests = paths.filter((path) => /^tests\/python\/.*\.py$/.test(path));
  const folders = tests.map((path) => path.slice(0, path.lastIndexOf("/")));
  return [...PYTHON_ROOTS, ...new Set(folders)];
}

/** Files of the tree that a dotted name may mean; none for packages of others. */
function filesOf(dotted: string, roots: string[], texts: Map<string, string>): string[] {
  const path = dotted.replaceAll(".", "/");
  return [path, ...roots.map((root) => `${root}/${path}`)].flatMap((base) =>
    [`${base}.py`, `${base}/__init__.py`].filter((file) => texts.has(file))
  );
}

async function pythonModules(root: string, texts: Map<string, string>): Promise<SourceModule[]> {
  const python = await findPython();
  const roots = pythonRoots([...texts.keys()]);
  const child = new Deno.Command(python.path, {
    args: [READER],
    cwd: root,
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(
    new TextEncoder().encode([...texts.keys()].filter((path) => path.endsWith(".py")).join("\n")),
  );
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) {
    throw new Error("Cannot read the Python files because the reader failed: it says why above");
  }
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "").map((line) => {
    const { path, imports, functions } = JSON.parse(line) as PythonModule;
    const files = imports.flatMap((dotted) => filesOf(dotted, roots, texts));
    return {
      path,
      imports: [...new Set(files)].map((from) => ({ from, names: [] })),
      exports: [],
      reexports: [],
      stars: [],
      functions,
      camel_fields: [],
      literal_spreads: [],
      conditional_spreads: [],
      called_once: [],
      only_types: false,
    };
  });
}

/** Reads every TypeScript and Python file under `root`. */
export async function readTree(root: string, entries: string[]): Promise<Tree> {
  const texts = new Map(
    sources(root).map((path) => [path, Deno.readTextFileSync(`${root}/${path}`)]),
  );
  const typescript = [...texts].filter(([path]) => path.endsWith(".ts")).map(([path, text]) =>
    typescriptModule(path, text)
  );
  const all = [...typescript, ...await pythonModules(root, texts)];
  return { texts, modules: new Map(all.map((module) => [module.path, module])), entries };
}

type Settings = { exports: string | Record<string, string>; lint: { plugins: string[] } };

/** This repository. */
export async function readRepository(): Promise<Tree> {
  const settings = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as Settings;
  return await readTree(ROOT, entriesOf(settings));
}

/** Files whose exports are for others: those that `deno.json` names. */
export function entriesOf({ exports, lint }: Settings): string[] {
  const named = typeof exports === "string" ? [exports] : Object.values(exports);
  return [...named, ...lint.plugins].map((path) => path.replace(/^\.\//, ""));
}
