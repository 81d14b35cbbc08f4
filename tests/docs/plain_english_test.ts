import { deepStrictEqual, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { commandLine } from "../../cli/command_line.ts";
import {
  BANNED,
  comments,
  type Finding,
  findings,
  literals,
  prose,
  pythonComments,
} from "./plain_english.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Rooms whose messages people read. */
const ROOMS = [
  "algs",
  "cli",
  "configs",
  "data",
  "docs/generate",
  "engine",
  "flows",
  "rewards",
  "rollouts",
  "runs",
  "workers",
];
/** Rooms whose comments are in plain English; the others' are still to be rewritten. */
const ROOMS_WITH_COMMENTS = [
  "algs",
  "bench",
  "cli",
  "configs",
  "data",
  "docs/generate",
  "engine",
  "flows",
  "rewards",
  "rollouts",
  "runs",
  "workers",
];
const PYTHON_WITH_COMMENTS = ["algorithm", "loss", "rewards", "sampler", "trainer"].map((room) =>
  `workers/python/holdfast_worker/${room}`
);

const read = (path: string): string => Deno.readTextFileSync(`${ROOT}${path}`);
const shown = (found: Finding[]): string[] =>
  found.map(({ place, words, better }) => `${place}: '${words}', better: ${better}`);

function filesUnder(dir: string, suffix: string): string[] {
  return [...Deno.readDirSync(`${ROOT}${dir}`)].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${dir}/${entry.name}`;
      return entry.isDirectory
        ? filesUnder(path, suffix)
        : entry.name.endsWith(suffix)
        ? [path]
        : [];
    });
}

function pages(): string[] {
  const top = [...Deno.readDirSync(ROOT)].map(({ name }) => name).filter((name) =>
    name.endsWith(".md")
  ).toSorted();
  return [...top, ...filesUnder("docs", ".md")];
}

function descriptionsOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "description" && typeof inner === "string" ? [inner] : descriptionsOf(inner)
  );
}

function helpOf(command: Command): string[] {
  return [command.helpInformation(), ...command.commands.flatMap(helpOf)];
}

Deno.test("pages are written in plain English", () => {
  deepStrictEqual(shown(pages().flatMap((path) => findings(path, prose(read(path))))), []);
});

Deno.test("the descriptions of settings are written in plain English", () => {
  const schema = JSON.parse(read("configs/holdfast.schema.json"));
  const texts = [...new Set(descriptionsOf(schema))];
  ok(texts.length > 100, `only ${texts.length} descriptions`);
  deepStrictEqual(shown(texts.flatMap((text) => findings("holdfast.schema.json", text))), []);
});

Deno.test("the help of every verb is written in plain English", () => {
  const texts = helpOf(commandLine());
  ok(texts.length > 20, `only ${texts.length} verbs`);
  deepStrictEqual(shown(texts.flatMap((text) => findings("--help", text))), []);
});

Deno.test("the messages of every room are written in plain English", () => {
  const files = ROOMS.flatMap((room) => [...filesUnder(room, ".ts"), ...filesUnder(room, ".py")]);
  ok(files.length > 100, `only ${files.length} files`);
  deepStrictEqual(
    shown(files.flatMap((path) => literals(read(path)).flatMap((text) => findings(path, text)))),
    [],
  );
});

Deno.test("the comments of finished rooms are written in plain English", () => {
  const files = ROOMS_WITH_COMMENTS.flatMap((room) => filesUnder(room, ".ts"));
  ok(files.length > 90, `only ${files.length} files`);
  deepStrictEqual(shown(files.flatMap((path) => findings(path, comments(read(path))))), []);
  const python = PYTHON_WITH_COMMENTS.flatMap((room) => filesUnder(room, ".py"));
  ok(python.length > 20, `only ${python.length} files`);
  deepStrictEqual(shown(python.flatMap((path) => findings(path, pythonComments(read(path))))), []);
});

Deno.test("the lint of words reads comments, and no code", () => {
  const source =
    `/** It is\n * gone for good. \`for good\` */\nconst a = "for good"; // For good.\n`;
  deepStrictEqual(findings("a.ts", comments(source)).length, 2);
  const python = `"""It is\ngone for good."""\na = "for good"  # For good.\n`;
  deepStrictEqual(findings("a.py", pythonComments(python)).length, 2);
});

Deno.test("the lint of words finds each banned phrase in its example, in prose and in a message, and not in code", () => {
  for (const { example, better } of BANNED) {
    const found = findings("page.md", prose(`# Title\n\nThis ${example} here.\n`));
    ok(found.length > 0, `'${example}' is not found`);
    ok(
      found.some((finding) => finding.better === better),
      `'${example}' is found as ${JSON.stringify(found)}`,
    );
    deepStrictEqual(
      literals(`throw new Error("Cannot do it: ${example}");`).flatMap((text) =>
        findings("a.ts", text)
      ).length > 0,
      true,
    );
    deepStrictEqual(findings("page.md", prose(`\`\`\`ts\nconst a = "${example}";\n\`\`\`\n`)), []);
    deepStrictEqual(findings("page.md", prose(`See \`${example}\`.`)), []);
    deepStrictEqual(findings("page.md", better), []);
  }
});
