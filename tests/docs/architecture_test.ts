import { deepStrictEqual, ok } from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { IMPORT_TABLE } from "../lint/rooms.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => Deno.readTextFileSync(`${ROOT}${path}`);

function isThere(path: string): boolean {
  try {
    Deno.statSync(`${ROOT}${path}`);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * Code spans that are paths of the repository; not those with a placeholder in capitals, nor what a
 * home holds.
 */
function paths(page: string): string[] {
  const prose = page.replaceAll(/^```[^]*?^```/gm, "");
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!);
  return spans.filter((span) =>
    /^[\w.]+\/[\w./]*$/.test(span) && !span.startsWith(".holdfast") && !/[A-Z]{3}/.test(span)
  );
}

/**
 * Names that stand in links to files: `[`name`](file)`, each with the file that should declare it.
 */
function names(page: string, path: string): { name: string; file: string }[] {
  return [...page.matchAll(/\[`([^`]+)`\]\(([^)#]+)\)/g)].map(([, name, target]) => ({
    name: name!,
    file: join(dirname(path), target!),
  }));
}

function isDeclared({ name, file }: { name: string; file: string }): boolean {
  return isThere(file) &&
    new RegExp(`\\b(class|def|function|const|type|interface)\\*? ${name}\\b`).test(read(file));
}

type Picture = { places: string[]; imports: [from: string, to: string][] };

/** The boxes of a Mermaid flow chart, by the path that each begins with, and its solid arrows. */
function picture(page: string): Picture {
  const text = /^```mermaid\n([^]*?)^```/m.exec(page)?.[1] ?? "";
  return {
    places: [...text.matchAll(/\["([\w./]+)<br>/g)].map((match) => match[1]!),
    imports: [...text.matchAll(/^ {2}(\w+)(?:\[[^\]]*\])? --> (\w+)/gm)].map((
      [, from, to],
    ) => [from!, to!]),
  };
}

const ARCHITECTURE = "docs/architecture.md";

Deno.test("every path that the architecture and the contributors' page name is there", () => {
  for (const page of [ARCHITECTURE, "CONTRIBUTING.md"]) {
    const named = paths(read(page));
    ok(named.length >= 5, `${page}: ${named}`);
    deepStrictEqual([page, named.filter((path) => !isThere(path))], [page, []]);
  }
});

Deno.test("every name of the architecture is declared in the file that it leads to", () => {
  const named = names(read(ARCHITECTURE), ARCHITECTURE);
  ok(named.length > 30, String(named.length));
  deepStrictEqual(named.filter((each) => !isDeclared(each)), []);
});

Deno.test("the picture has every room of the product, and its arrows are imports that the table allows", () => {
  const { places, imports } = picture(read(ARCHITECTURE));
  const rooms = Object.keys(IMPORT_TABLE).filter((room) =>
    !room.includes(".") && isThere(`${room}/mod.ts`)
  ).concat(
    "cli",
  );
  deepStrictEqual(rooms.filter((room) => !places.includes(`${room}/`)), []);
  deepStrictEqual(places.filter((place) => !isThere(place)), []);
  ok(imports.length > 10, String(imports.length));
  deepStrictEqual(imports.filter(([from, to]) => !IMPORT_TABLE[from]?.includes(to)), []);
});

Deno.test("a path, a name and an arrow that are gone are found", () => {
  const page =
    "`engine/gone.ts` `engine/` `algs/NAME.ts`\n```sh\n`cli/gone.ts`\n```\n[`Engine`](engine/gone.ts) " +
    "[`Gone`](engine/engine.ts) [`Engine`](engine/engine.ts)\n" +
    '```mermaid\nflowchart TD\n  engine["engine/<br>a"] --> cli["gone/<br>b"]\n  cli -.-> engine\n```\n';
  deepStrictEqual(paths(page).filter((path) => !isThere(path)), ["engine/gone.ts"]);
  const gone = names(page, "README.md").filter((each) => !isDeclared(each)).map(({ name }) => name);
  deepStrictEqual(gone, ["Engine", "Gone"]);
  deepStrictEqual(picture(page), { places: ["engine/", "gone/"], imports: [["engine", "cli"]] });
});
