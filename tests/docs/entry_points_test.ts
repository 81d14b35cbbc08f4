/** What the package offers from where: docs/decisions/0035-entry-points.md. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { entryPoints, readEntryPoint } from "./entry_points.ts";
import { parsePage } from "./markdown.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const ENTRY_POINTS = entryPoints();
const NAMES = new Map(
  Object.entries(ENTRY_POINTS).map((
    [entry, file],
  ): [string, string[]] => [entry, readEntryPoint(file).names]),
);
/** A ratchet: what a script begins with stays small. Lower it with the list; do not raise it. */
const SCRIPT_NAMES = 42;

/** A script as a person would write it: a file of `examples/`, or a block of a page. */
type Script = { place: string; text: string };
type Import = { entry: string; names: string[]; space: string | null };

function scripts(): Script[] {
  const examples = files("examples", ".ts").map((place) => ({
    place,
    text: Deno.readTextFileSync(ROOT + place),
  }));
  const blocks = ["README.md", "CHANGELOG.md", ...files("docs", ".md")].flatMap((page) =>
    parsePage(Deno.readTextFileSync(ROOT + page)).blocks
      .filter(({ lang, attributes }) => lang === "ts" && attributes.shows === undefined)
      .map(({ line, text }) => ({ place: `${page}:${line}`, text }))
  );
  return [...examples, ...blocks];
}

function files(dir: string, ending: string): string[] {
  return [...Deno.readDirSync(ROOT + dir)].flatMap(({ name, isDirectory }) =>
    isDirectory ? files(`${dir}/${name}`, ending) : name.endsWith(ending) ? [`${dir}/${name}`] : []
  );
}

/** The imports of a script, with their names as their entry point calls them. */
function imports(text: string): Import[] {
  return [...text.matchAll(/^import (?:type )?([^;]+?) from "([^"]+)";/gm)].map(
    ([, what, entry]) => {
      const space = /^\* as (\w+)$/.exec(what!)?.[1] ?? null;
      const names = space === null
        ? what!.replace(/^\{|\}$/g, "").split(",").map((name) => name.trim()).filter(Boolean)
        : [
          ...new Set(
            [...text.matchAll(RegExp(`\\b${space}\\.(\\w+)`, "g"))].map(([, name]) => name!),
          ),
        ];
      return {
        entry: entry!,
        space,
        names: names.map((name) => name.replace(/^type /, "").split(" as ")[0]!),
      };
    },
  );
}

/**
 * What is wrong with the imports of a script; empty: each name comes from where it belongs, and is
 * used.
 */
function problems({ place, text }: Script): string[] {
  const body = text.replaceAll(/^import [^;]+;/gm, "");
  return imports(text).filter(({ entry }) => !entry.startsWith("./examples/")).flatMap(
    ({ entry, names, space }) => {
      const known = NAMES.get(entry);
      if (known === undefined) return [`${place} imports '${entry}', which is no entry point`];
      const missing = names.filter((name) => !known.includes(name)).map((name) =>
        `${place}: '${entry}' has no '${name}'`
      );
      const idle = names.filter((name) => !RegExp(`\\b${name}\\b`).test(body)).map((name) =>
        `${place}: '${name}' is idle`
      );
      const whole = space !== null && entry !== "holdfast"
        ? [`${place} takes all of '${entry}': name what it needs`]
        : [];
      return [...missing, ...idle, ...whole];
    },
  );
}

Deno.test("the package has these entry points", () => {
  deepStrictEqual(ENTRY_POINTS, {
    "holdfast": "mod.ts",
    "holdfast/engine": "entry/engine.ts",
    "holdfast/algorithms": "entry/algorithms.ts",
    "holdfast/stages": "entry/stages.ts",
    "holdfast/runs": "entry/runs.ts",
    "holdfast/testing": "entry/testing.ts",
  });
});

Deno.test("no name stands in two entry points, so each has one smallest", () => {
  const places = new Map<string, string[]>();
  for (const [entry, names] of NAMES) {
    for (const name of names) places.set(name, [...places.get(name) ?? [], entry]);
  }
  ok(places.size > 300, `only ${places.size} names were found`);
  deepStrictEqual([...places].filter(([, entries]) => entries.length > 1), []);
});

Deno.test(`holdfast itself has ${SCRIPT_NAMES} names`, () => {
  strictEqual(NAMES.get("holdfast")!.length, SCRIPT_NAMES);
});

Deno.test("an entry point is a list of names: it takes no room whole, and holds no code", () => {
  for (const file of Object.values(ENTRY_POINTS)) strictEqual(readEntryPoint(file).rest, "", file);
});

Deno.test("entry points resolve outside the clone: in a script with its configuration, in a module that it loads", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-entry-" });
  try {
    const lines = [...NAMES].map(([entry], i) => `import * as e${i} from "${entry}";`);
    const sizes = `[${[...NAMES].map((_, i) => `Object.keys(e${i}).length > 0`)}]`;
    await Deno.writeTextFile(
      `${dir}/x.ts`,
      `${lines.join("\n")}\nexport const found = ${sizes};\n`,
    );
    await Deno.writeTextFile(
      `${dir}/main.ts`,
      `import { found } from "./x.ts";\nconsole.log(JSON.stringify(found));\n`,
    );
    const all = [...NAMES].map(() => true);
    deepStrictEqual((await import(`file://${dir}/x.ts`)).found, all);
    const args = ["run", "-A", "--quiet", "--config", `${ROOT}deno.json`, "main.ts"];
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: dir }).output();
    deepStrictEqual(
      JSON.parse(new TextDecoder().decode(stdout) || "null"),
      all,
      new TextDecoder().decode(stderr),
    );
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("examples and pages import each name from the entry point that has it, and none that they do not use", () => {
  const all = scripts();
  ok(all.length >= 8, `only ${all.length} scripts were found`);
  deepStrictEqual(all.flatMap(problems), []);
});

Deno.test("an import from a larger place, of an idle name or of a whole subject is found", () => {
  const found = (text: string) => problems({ place: "x.ts", text }).join("\n");
  match(
    found(`import { graph } from "./mod.ts";\ngraph();\n`),
    /'.\/mod.ts', which is no entry point/,
  );
  match(
    found(`import { graph } from "holdfast/engine";\ngraph();\n`),
    /'holdfast\/engine' has no 'graph'/,
  );
  match(found(`import { graph, z } from "holdfast";\ngraph();\n`), /'z' is idle/);
  match(
    found(`import * as all from "holdfast/runs";\nall.Home;\n`),
    /takes all of 'holdfast\/runs'/,
  );
  match(found(`import * as rl from "holdfast";\nrl.Engine;\n`), /'holdfast' has no 'Engine'/);
  strictEqual(
    found(`import { type Context, graph } from "holdfast";\ngraph((c: Context) => c);\n`),
    "",
  );
});
