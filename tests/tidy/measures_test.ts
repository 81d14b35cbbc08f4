import { deepStrictEqual, match, ok, rejects } from "node:assert/strict";
import { dirname } from "node:path";
import { COUNTS, RULES, testable } from "./measures.ts";
import { entriesOf, readTree } from "./repository.ts";
import { typescriptModule } from "./typescript_module.ts";

const PACKAGE = "workers/python/holdfast_worker";

/** A repository in which nothing is found. */
const TIDY: Record<string, string> = {
  "mod.ts": `export { a } from "./room/mod.ts";\nexport type * from "./room/mod.ts";\n`,
  "room/mod.ts": `export { a } from "./a.ts";\nexport * from "./types.ts";\n`,
  "room/a.ts":
    `import type { T } from "./types.ts";\nimport { z } from "zod";\nexport const a: T = z.parse(1);\n`,
  "room/types.ts": `export type T = number;\n`,
  "room/deep/b.ts": `export const { b, c: [d] } = { b: 1, c: [2] };\n`,
  "tests/room/a_test.ts": `import { a } from "../../room/a.ts";\na;\n`,
  "tests/room/deep/b_test.ts": `const { b } = await import("../../../room/deep/b.ts");\nb;\n`,
  [`${PACKAGE}/__init__.py`]: "",
  [`${PACKAGE}/x/__init__.py`]: "",
  [`${PACKAGE}/x/y.py`]: `import json\n\nfrom . import z\n`,
  [`${PACKAGE}/x/z.py`]: `import os.path\n`,
  "tests/python/x/test_x_y.py": `from holdfast_worker.x import y\n`,
  "tests/python/x/test_z.py": `import holdfast_worker.x.z\n`,
};

/** A run finds the graph of its record by this. */
const FOUND_AGAIN = "export const flow = 1;\nconst entry = `${import.meta.url}#flow`;\n";

const body = (lines: number, line: string) => Array(lines).fill(line).join("\n");

/** What each measure finds after one change to the tidy repository. */
const FOUND: {
  measure: string;
  what: string;
  change: Record<string, string>;
  findings: string[];
}[] = [
  {
    measure: "files_in_import_cycles",
    what: "types that two files take from each other",
    change: { "room/types.ts": `import type { a } from "./a.ts";\nexport type T = typeof a;\n` },
    findings: ["room/a.ts with room/types.ts", "room/types.ts with room/a.ts"],
  },
  {
    measure: "files_in_import_cycles",
    what: "a type that is imported where it is named",
    change: { "room/types.ts": `export type T = typeof import("./a.ts").a;\n` },
    findings: ["room/a.ts with room/types.ts", "room/types.ts with room/a.ts"],
  },
  {
    measure: "files_in_import_cycles",
    what: "a file that takes from its own room's mod.ts",
    change: { "room/a.ts": `import type { T } from "./mod.ts";\nexport const a: T = 1;\n` },
    findings: ["room/a.ts with room/mod.ts", "room/mod.ts with room/a.ts"],
  },
  {
    measure: "files_in_import_cycles",
    what: "Python modules, one of them inside a function",
    change: { [`${PACKAGE}/x/z.py`]: `def late():\n    from holdfast_worker.x import y\n` },
    findings: [
      `${PACKAGE}/x/y.py with ${PACKAGE}/x/z.py`,
      `${PACKAGE}/x/z.py with ${PACKAGE}/x/y.py`,
    ],
  },
  {
    measure: "files_in_import_cycles",
    what: "a Python package whose __init__.py runs before the module that is imported",
    change: {
      [`${PACKAGE}/x/__init__.py`]: `from holdfast_worker.w import v\n`,
      [`${PACKAGE}/w/v.py`]: `from holdfast_worker.x import z\n`,
      "tests/python/w/test_v.py": "",
    },
    findings: [
      `${PACKAGE}/w/v.py with ${PACKAGE}/x/__init__.py`,
      `${PACKAGE}/x/__init__.py with ${PACKAGE}/w/v.py`,
    ],
  },
  {
    measure: "python_rooms_in_import_cycles",
    what: "two folders that import each other by different files",
    change: {
      [`${PACKAGE}/x/y.py`]: `from holdfast_worker.w import v\n`,
      [`${PACKAGE}/w/v.py`]: "import os\n",
      [`${PACKAGE}/w/u.py`]: `def late():\n    import holdfast_worker.x.z\n`,
    },
    findings: ["w/ with x/", "x/ with w/"],
  },
  {
    measure: "functions_over_70_lines",
    what: "71 lines, none of 70",
    change: {
      "tests/room/a_test.ts":
        `import { a } from "../../room/a.ts";\nconst f = () => {\n${body(68, "a;")}\n};\n` +
        `Deno.test("n", async function () {\n${body(69, "a;")}\n});\nclass K {\n  m() {\n${
          body(69, "f;")
        }\n  }\n}\n`,
      [`${PACKAGE}/x/z.py`]: `@wraps\nasync def f():\n${body(69, "    pass")}\n\n\ndef g():\n${
        body(69, "    pass")
      }\n`,
    },
    findings: [
      "tests/room/a_test.ts:72 a function in test(): 71 lines",
      "tests/room/a_test.ts:144 m: 71 lines",
      `${PACKAGE}/x/z.py:1 f: 71 lines`,
    ],
  },
  {
    measure: "files_over_400_lines",
    what: "401 lines, none of 400",
    change: {
      "room/deep/b.ts": body(401, "1;") + "\n",
      [`${PACKAGE}/x/z.py`]: body(400, "1") + "\n",
    },
    findings: ["room/deep/b.ts: 401 lines"],
  },
  {
    measure: "lines_over_100_columns",
    what: "101 columns, none of 100, whatever a character takes in memory",
    change: {
      "room/types.ts": `// ${"x".repeat(98)}\n// ${"𝒳".repeat(97)}\nexport type T = number;\n`,
    },
    findings: ["room/types.ts:1"],
  },
  {
    measure: "files_without_a_mirrored_test",
    what: "a test that is gone, one of another room, and no __init__.py",
    change: {
      "tests/room/a_test.ts": "",
      "other/b.ts": "export {};\nconst b = 1;\n",
      [`${PACKAGE}/q.py`]: "",
    },
    findings: ["other/b.ts", "room/a.ts", `${PACKAGE}/q.py`],
  },
  {
    measure: "folders_over_25_files",
    what: "26 files beside each other, none of 25",
    change: Object.fromEntries([
      ...Array.from({ length: 26 }, (_, i) => [`other/a${i}.ts`, "export {};\n"]),
      ...Array.from({ length: 25 }, (_, i) => [`other/deep/a${i}.ts`, "export {};\n"]),
    ]),
    findings: ["other/: 26 files"],
  },
  {
    measure: "exports_that_nothing_imports",
    what: "a constant that only its own file reads, and one that a room passes on to nobody",
    change: {
      "room/deep/b.ts":
        `export const b = 1;\nexport const own = b;\nown;\n${FOUND_AGAIN}export function passed() {}\n`,
      "tests/room/deep/b_test.ts": `import { b } from "../../../room/deep/b.ts";\nb;\n`,
      "room/mod.ts":
        `export { a } from "./a.ts";\nexport * from "./types.ts";\nexport { passed } from "./deep/b.ts";\n`,
      "mod.ts": `export { a, type T } from "./room/mod.ts";\n`,
    },
    findings: ["room/deep/b.ts: own", "room/deep/b.ts: passed", "room/mod.ts: passed"],
  },
  {
    measure: "exports_that_nothing_imports",
    what: "a name that only `export *` hands on",
    change: {
      "mod.ts": `export { a } from "./room/mod.ts";\n`,
      "room/a.ts": `export const a = 1;\n`,
    },
    findings: ["room/types.ts: T"],
  },
  {
    measure: "imports_past_a_mod",
    what: "a type of another room's file",
    change: {
      "other/c.ts":
        `import type { T } from "../room/types.ts";\nimport { a } from "../room/mod.ts";\na as T;\n`,
    },
    findings: ["other/c.ts imports room/types.ts"],
  },
  {
    measure: "fields_in_camel_case",
    what: "options and members of an interface, and nothing that is called",
    change: {
      "room/types.ts":
        `export type T = { graceMs: number; grace_ms: number };\nexport interface U {\n  readonly logDir?: string;\n` +
        `  onEvent?: T;\n  isLate: T;\n  nowMs: () => number;\n  startAll(): void;\n}\n`,
    },
    findings: ["room/types.ts:1 graceMs", "room/types.ts:3 logDir"],
  },
  {
    measure: "spreads_of_literals",
    what: "an object in an object and a list in a list, and no spread that does something",
    change: {
      "room/deep/b.ts": `export const b = { ...{ x: 1 } };\nconst list = [\n  ...[b],\n];\n` +
        `f({ ...b, ...(list ? { b } : {}) }, [...list], ...[b]);\n`,
    },
    findings: ["room/deep/b.ts:1", "room/deep/b.ts:3"],
  },
  {
    measure: "conditional_object_spreads",
    what: "one of two or three branches and &&, over lines too, and none that leaves out no field",
    change: {
      "room/deep/b.ts":
        `export const b = { ...(c ? { x: 1 } : {}) };\nf({ ...(c && { x: 1 }) });\n` +
        `f({\n  a,\n  ...(\n    c\n      ? {}\n      : { x: 1 }\n  ),\n});\n` +
        `f({ ...(c ? { x: 1 } : d ? { y: 1 } : {}), ...(c ? { x: 1 } : undefined) });\n` +
        `f({ ...(c ? { x: 1 } : { y: 1 }), ...c, ...c ?? {} }, [...(c ? [1] : [])]);\n`,
      "tests/room/deep/b_test.ts": `f({ ...(c ? { x: 1 } : {}) });\n`,
    },
    findings: [1, 2, 5, 11, 11].map((line) => `room/deep/b.ts:${line}`),
  },
  {
    measure: "short_functions_called_once",
    what: "a function and a method of eight lines, and none that is longer, exported or used twice",
    change: {
      "room/deep/b.ts": `export function b() {\n  once();\n  long();\n  twice();\n  twice();\n}\n` +
        `function once() {\n${body(6, "  a;")}\n}\nfunction long() {\n${body(7, "  a;")}\n}\n` +
        `function twice() {}\nclass K {\n  m() {\n    this.#n();\n  }\n  #n() {}\n}\n`,
    },
    findings: ["room/deep/b.ts:7 once", "room/deep/b.ts:29 n"],
  },
];

const MEASURES = { ...RULES, ...COUNTS };

async function found(measure: string, change: Record<string, string>): Promise<string[]> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-tidy-" });
  try {
    for (const [path, text] of Object.entries({ ...TIDY, ...change })) {
      if (path.startsWith("tests/") && text === "") continue;
      await Deno.mkdir(dirname(`${dir}/${path}`), { recursive: true });
      await Deno.writeTextFile(`${dir}/${path}`, text);
    }
    return MEASURES[measure]!(await readTree(dir, ["mod.ts"]));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

for (const { measure, what, change, findings } of FOUND) {
  Deno.test(`${measure} finds ${what}`, async () => {
    deepStrictEqual(await found(measure, change), findings);
  });
}

Deno.test("no measure finds anything in a tidy tree, and each can find something", async () => {
  for (const measure of Object.keys(MEASURES)) {
    deepStrictEqual([measure, await found(measure, {})], [measure, []]);
    ok(FOUND.some((each) => each.measure === measure && each.findings.length > 0), measure);
  }
});

Deno.test("testable() leaves out what has nothing to run", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-tidy-" });
  await Deno.mkdir(`${dir}/room`);
  await Deno.writeTextFile(
    `${dir}/room/types.ts`,
    `import type { A } from "./a.ts";\nexport interface B extends A {}\n`,
  );
  await Deno.writeTextFile(`${dir}/room/a.ts`, `export interface A {}\nexport enum E { A }\n`);
  deepStrictEqual(testable(await readTree(dir, [])), ["room/a.ts"]);
  await Deno.remove(dir, { recursive: true });
});

Deno.test("a file that the parser reads only in part is refused", () => {
  const broken = "export const a = 1;\n;\nexport const b = 2;\n// The end.\n";
  let message = "";
  try {
    typescriptModule("room/a.ts", broken);
  } catch (error) {
    message = (error as Error).message;
  }
  match(message, /Cannot read 'room\/a\.ts' because the parser stops before '[^]*export const b/);
  deepStrictEqual(typescriptModule("room/a.ts", broken.replace("\n;", "")).exports, ["a", "b"]);
});

Deno.test("a Python file that does not parse is an error", async () => {
  await rejects(
    found("files_in_import_cycles", { [`${PACKAGE}/x/z.py`]: "def\n" }),
    /Cannot read the Python files/,
  );
});

Deno.test("entriesOf() names every export and every lint plugin of deno.json", () => {
  const lint = { plugins: ["./tests/lint/rooms.ts"] };
  deepStrictEqual(entriesOf({ exports: "./mod.ts", lint }), ["mod.ts", "tests/lint/rooms.ts"]);
  const several = { ".": "./mod.ts", "./testing": "./testing/mod.ts" };
  deepStrictEqual(entriesOf({ exports: several, lint }), [
    "mod.ts",
    "testing/mod.ts",
    "tests/lint/rooms.ts",
  ]);
});
