/**
 * Every command and every setting that a message of the code names: each command parses, each
 * setting exists.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import { resumeTakes } from "../../cli/advised_settings.ts";
import { commandLine } from "../../cli/command_line.ts";
import { FLOWS, parseOverride } from "../../configs/mod.ts";
import { bare, optionsOf } from "../../configs/settings/schema_walk.ts";
import { IMPORT_TABLE } from "../lint/rooms.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const ROOMS = Object.keys(IMPORT_TABLE).filter((room) =>
  !["bench", "examples", "mod.ts", "testing"].includes(room)
);
/** Stands for a value that is known when the message is made. */
const HOLE = "\u25a1";

type Text = { file: string; text: string };
type Node = {
  type: string;
  parent?: Node;
  value?: unknown;
  operator?: string;
  left?: Node;
  right?: Node;
  quasis?: { cooked: string }[];
  callee?: { name?: string };
  arguments?: Node[];
};

function filesOf(dir: string, ending: string): string[] {
  return [...Deno.readDirSync(`${ROOT}${dir}`)].flatMap(({ name, isDirectory }) => {
    if (isDirectory) return filesOf(`${dir}/${name}`, ending);
    return name.endsWith(ending) ? [`${dir}/${name}`] : [];
  });
}

/** What a literal, a template or a sum of them says. */
function textOf(node: Node): string {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral") return node.quasis!.map(({ cooked }) => cooked).join(HOLE);
  if (isSum(node)) return textOf(node.left!) + textOf(node.right!);
  return HOLE;
}

function isSum(node: Node): boolean {
  return node.type === "BinaryExpression" && node.operator === "+";
}

/** Texts of a TypeScript file, and those that it gives `command`. */
function textsOf(file: string): { texts: Text[]; commands: Text[] } {
  const texts: Text[] = [];
  const commands: Text[] = [];
  const take = (node: Node) => {
    if (node.parent && isSum(node.parent)) return;
    const text = textOf(node);
    if (text.replaceAll(HOLE, "") !== "") texts.push({ file, text });
  };
  const plugin = {
    name: "texts",
    rules: {
      texts: {
        create: () => ({
          Literal: take,
          TemplateLiteral: take,
          BinaryExpression: take,
          CallExpression(node: Node) {
            if (node.callee?.name === "command") {
              commands.push({ file, text: textOf(node.arguments![1]!) });
            }
          },
        }),
      },
    },
  };
  Deno.lint.runPlugin(
    plugin as unknown as Deno.lint.Plugin,
    file,
    Deno.readTextFileSync(`${ROOT}${file}`),
  );
  return { texts, commands };
}

/** Texts of a Python file: those on one line, in which messages stand. */
function pythonTexts(file: string): Text[] {
  const source = Deno.readTextFileSync(`${ROOT}${file}`).replaceAll(/"""[^]*?"""/g, "");
  return [...source.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)].map(([, text]) => ({
    file,
    text: text!.replaceAll(/\{[^}]*\}/g, HOLE),
  }));
}

const READ = ROOMS.flatMap((room) => filesOf(room, ".ts")).map(textsOf);
const TEXTS = [
  ...READ.flatMap(({ texts }) => texts),
  ...filesOf("workers/python/holdfast_worker", ".py").flatMap(pythonTexts),
];

/** Every path of a schema, in lists and in the options of unions too. */
function pathsOf(schema: z.ZodType, path = ""): string[] {
  const here = bare(schema);
  const below = (name: string, inner: z.ZodType) =>
    pathsOf(inner, path === "" ? name : `${path}.${name}`);
  if (here instanceof z.ZodObject) {
    return [
      path,
      ...Object.entries(here.shape).flatMap(([name, field]) => below(name, field as z.ZodType)),
    ];
  }
  if (here instanceof z.ZodArray) return [path, ...pathsOf(here.element as z.ZodType, path)];
  if (here instanceof z.ZodDiscriminatedUnion) {
    return [...optionsOf(here).values()].flatMap((one) => pathsOf(one, path));
  }
  if (here instanceof z.ZodUnion) {
    return (here.options as z.ZodType[]).flatMap((one) => pathsOf(one, path));
  }
  return [path];
}

const FLOW_SCHEMAS: z.ZodType[] = Object.values(FLOWS);
const PATHS = new Set(FLOW_SCHEMAS.flatMap((schema) => pathsOf(schema)));
const BLOCKS = [
  ...new Set(FLOW_SCHEMAS.flatMap((schema) => Object.keys((schema as z.ZodObject).shape))),
];
const PATH = new RegExp(`(?<![\\w./:\`])(?:${BLOCKS.join("|")})(?:\\.[a-z_]+)+(?![\\w(/])`, "g");
/** Ends of files and what looks like a setting and is none. */
const NO_SETTING = /\.(json|jsonl|py|ts|yaml|log|rank|md|safetensors)$/;

/** Settings of others, in what is said of their profiles. */
const OF_OTHERS = ["tokenizer.model", "reward.broadcast"];

function settingsIn(text: string): string[] {
  return [...text.matchAll(PATH)].map(([path]) => path).filter((path) =>
    !NO_SETTING.test(path) && !OF_OTHERS.includes(path)
  );
}

/**
 * What the command line reads in these arguments, without doing it. @throws {CommanderError} If it
 * cannot.
 */
function parsed(args: string[]): { verb: string; args: string[] } {
  const rl = commandLine();
  let found: { verb: string; args: string[] } | undefined;
  const still = (command: ReturnType<typeof commandLine>) => {
    command.exitOverride().configureOutput({ writeErr: () => {} }).allowExcessArguments(
      command === rl,
    );
    command.action(() => void (found = { verb: command.name(), args: command.args }));
    command.commands.forEach((one) => still(one as typeof rl));
  };
  still(rl);
  rl.parse(args, { from: "user" });
  return found!;
}

/** A command with something in place of what is known later. */
function filled(text: string): string[] {
  return text.replaceAll(`--round ${HOLE}`, "--round 1").replaceAll(`=${HOLE}`, "=1").replaceAll(
    `${HOLE}.`,
    "trainer.",
  )
    .replaceAll(HOLE, "RUN").trim().split(/\s+/);
}

Deno.test("every command that a message advises parses, and its settings exist and are accepted where they are advised", () => {
  const inTexts = TEXTS.flatMap(({ file, text }) =>
    [...text.matchAll(/deno task rl ([^\n`'"]+)/g)].map(([, command]) => ({ file, text: command! }))
  );
  const commands = [...inTexts, ...READ.flatMap((one) => one.commands)].filter(({ text }) =>
    /[a-z]/.test(text)
  );
  ok(commands.length > 10, "commands are found");
  const wrong = commands.flatMap(({ file, text }) => {
    try {
      const { verb, args } = parsed(filled(text));
      const overrides = verb === "resume" || verb === "fork"
        ? args.slice(1).map(parseOverride)
        : [];
      const refused = overrides.filter((override) => {
        if ("message" in override) return true;
        const path = override.path.join(".");
        return verb === "resume"
          ? !FLOW_SCHEMAS.some((schema) => resumeTakes(schema, path))
          : !PATHS.has(path);
      });
      return refused.map((override) => `${file}: '${text}': ${override.text}`);
    } catch (error) {
      return [`${file}: '${text}': ${(error as Error).message}`];
    }
  });
  deepStrictEqual(wrong, []);
});

Deno.test("every setting that a text of the code names exists", () => {
  const named = TEXTS.flatMap(({ file, text }) => settingsIn(text).map((path) => ({ file, path })));
  ok(named.length > 50, "settings are found");
  deepStrictEqual(
    named.filter(({ path }) => !PATHS.has(path)).map(({ file, path }) => `${file}: ${path}`),
    [],
  );
});

Deno.test("a sentence that advises a resume with a setting names one that a resume takes", () => {
  const sentences = TEXTS.flatMap(({ file, text }) =>
    text.split(/(?<=[.;:])\s/).map((sentence) => ({ file, sentence }))
  );
  const wrong = sentences.filter(({ sentence }) => /\bresume\b.*\b(with|smaller)\b/i.test(sentence))
    .flatMap((found) =>
      settingsIn(found.sentence).filter((path) =>
        !FLOW_SCHEMAS.some((schema) => resumeTakes(schema, path))
      )
        .map((path) => `${found.file}: ${path} in '${found.sentence}'`)
    );
  deepStrictEqual(wrong, []);
});
