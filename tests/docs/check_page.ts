/** Runs the blocks of a page, in the order and the directory in which a reader would. */
import { ok, rejects, strictEqual } from "node:assert/strict";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { ConfigError, parseConfig } from "../../configs/mod.ts";
import { copyTree } from "../copy_tree.ts";
import { ensureTestEnvironments } from "../environments.ts";
import {
  type Block,
  computesOurFigures,
  masked,
  missingLine,
  type Page,
  parsePage,
  timeless,
} from "./markdown.ts";
import { NOT_RUN } from "./not_run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What a person adds to a configuration that ships without its model and data. */
const LOCAL: Record<string, string[]> = {
  "configs/gsm8k_grpo.yaml": [
    "data.train.0.path=rows.jsonl",
    "data.eval.0.path=rows.jsonl",
    "model.path=model",
  ],
  "configs/sft.yaml": ["data.train.0.path=rows.jsonl", "model.path=model"],
};

function pagePaths(dir: string): string[] {
  const entries = [...Deno.readDirSync(`${ROOT}${dir}`)].toSorted((
    a,
    b,
  ) => (a.name < b.name ? -1 : 1));
  return entries.flatMap(({ name, isDirectory }) =>
    isDirectory ? pagePaths(`${dir}/${name}`) : name.endsWith(".md") ? [`${dir}/${name}`] : []
  );
}

const PATHS = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...pagePaths("changes"),
  ...pagePaths("docs"),
];
/** Every page, by its path. */
export const PAGES = new Map(
  PATHS.map((path): [string, Page] => [path, parsePage(Deno.readTextFileSync(`${ROOT}${path}`))]),
);

/** Pages whose printed figures are those of a real run, number by number. */
const FIGURES = ["README.md", "docs/getting_started.md"];

type Done = { code: number; output: string };

/** A copy of the repository, in which the docs' commands may write what they like. */
export class Workbench {
  readonly #python: string;

  private constructor(readonly dir: string, python: string) {
    this.#python = python;
  }

  static async open(): Promise<Workbench> {
    const { HOLDFAST_TEST_PYTHON } = await ensureTestEnvironments();
    const dir = await Deno.makeTempDir({ prefix: "holdfast-docs-" });
    await copyTree(ROOT, `${dir}/`);
    await Deno.mkdir(`${dir}/.holdfast`);
    return new Workbench(dir, HOLDFAST_TEST_PYTHON!);
  }

  async run(command: string, args: string[]): Promise<Done> {
    const deno = dirname(Deno.execPath());
    const child = new Deno.Command(command, {
      args,
      cwd: this.dir,
      env: { NO_COLOR: "1", PATH: `${deno}:${Deno.env.get("PATH")}`, OMP_NUM_THREADS: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
    const { code, stdout, stderr } = await child.output();
    const text = new TextDecoder();
    const output = (text.decode(stdout) + text.decode(stderr)).replaceAll(`${this.dir}/`, "");
    return { code, output };
  }

  python(text: string): Promise<Done> {
    return this.run(this.#python, ["-c", text]);
  }

  write(path: string, text: string): Promise<void> {
    return Deno.writeTextFile(`${this.dir}/${path}`, text);
  }

  close(): Promise<void> {
    return Deno.remove(this.dir, { recursive: true });
  }
}

/**
 * Lines of a script with the commands of `not_run.ts` replaced; null where nothing is left to run.
 */
function runnable(script: string): { script: string; replaced: boolean } {
  let replaced = false;
  const lines = script.trim().split("\n").flatMap((line) => {
    const listed = NOT_RUN.find(({ command }) => command === line.trim());
    if (!listed) return [line.replace(/^npx -y deno@2 /, "deno ")];
    replaced = true;
    return listed.instead === null ? [] : [listed.instead];
  });
  return { script: lines.join("\n"), replaced };
}

async function checkShell(bench: Workbench, block: Block): Promise<string | null> {
  const { script, replaced } = runnable(block.text);
  if (script === "") return null;
  const { code, output } = await bench.run("bash", ["-eu", "-c", script]);
  strictEqual(code, Number(block.attributes.exit ?? 0), `${script}\n${output}`);
  return replaced ? null : output;
}

async function checkScript(bench: Workbench, block: Block): Promise<void> {
  const file = block.attributes.file ?? `block_${block.line}.ts`;
  await bench.write(file, block.text);
  for (const args of [["check", "--quiet", file], ["run", "-A", file]]) {
    const { code, output } = await bench.run("deno", args);
    ok(
      code === 0 && !output.includes("Assertion failed"),
      `deno ${args.join(" ")} ended with ${code}:\n${output}`,
    );
  }
}

function merged(base: unknown, part: unknown): unknown {
  if (!isBlock(base) || !isBlock(part)) return part;
  const out: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(part)) {
    out[key] = key in base ? merged(base[key], value) : value;
  }
  return out;
}

function isBlock(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole configuration, or a part of the one that the fence names; `invalid` must be refused. */
async function checkYaml(bench: Workbench, { attributes, text, line }: Block): Promise<void> {
  const { merge, file } = attributes;
  if (file !== undefined) await bench.write(file, text);
  const cwd = `${bench.dir}/tests/configs/bad`;
  if (merge === undefined) {
    const parsing = () =>
      parseConfig(text, { file: `${bench.dir}/${file ?? `block_${line}.yaml`}`, cwd });
    if ("invalid" in attributes) await rejects(parsing, ConfigError);
    else await parsing();
    return;
  }
  const base = parse(await Deno.readTextFile(`${ROOT}${merge}`));
  const whole = stringify(merged(base, parse(text)));
  await parseConfig(whole, { file: `${bench.dir}/${merge}`, overrides: LOCAL[merge] ?? [], cwd });
}

/** `last`: the output of the shell block before it, null if that did not run as it stands. */
type Before = { last: string | null; alike: (line: string) => string };

/** Runs one block; returns the `last` of the next. */
async function checkBlock(
  bench: Workbench,
  block: Block,
  { last, alike }: Before,
): Promise<string | null> {
  const { shows } = block.attributes;
  if (shows !== undefined) {
    strictEqual(block.text, await Deno.readTextFile(`${ROOT}${shows}`), "run deno task schema");
    return last;
  }
  switch (block.lang) {
    case "sh":
      return await checkShell(bench, block);
    case "ts":
      await checkScript(bench, block);
      return last;
    case "python": {
      const { code, output } = await bench.python(block.text);
      strictEqual(code, 0, output);
      return last;
    }
    case "yaml":
      await checkYaml(bench, block);
      return last;
    case "json":
      JSON.parse(block.text);
      return last;
    case "text":
      if ("output" in block.attributes && last !== null) {
        const missing = missingLine(block.text, last, alike);
        strictEqual(
          missing,
          null,
          `the command before it does not print this line any more. It prints:\n${last}`,
        );
      }
      return last;
    case "mermaid": // Held by `architecture_test.ts`.
      return last;
    default:
      throw new Error(
        `Cannot check a block of language '${block.lang}': use sh, ts, python, yaml, json, text or mermaid`,
      );
  }
}

/** Blocks that are held without starting a process. */
const READ: ReadonlySet<string> = new Set(["json", "yaml"]);
const isRead = ({ lang, attributes }: Block) =>
  (READ.has(lang) || attributes.shows !== undefined) && !("ran" in attributes);

/** Checks a page's blocks, each a step. `read`: only those that start nothing. */
export async function checkPage(
  t: Deno.TestContext,
  path: string,
  { bench, read = false }: { bench: Workbench; read?: boolean },
): Promise<void> {
  let last: string | null = null;
  const alike = FIGURES.includes(path) && computesOurFigures() ? timeless : masked;
  const { blocks } = PAGES.get(path)!;
  for (const block of read ? blocks.filter(isRead) : blocks) {
    await t.step(`line ${block.line} (${block.lang})`, async () => {
      last = await checkBlock(bench, block, { last, alike });
    });
  }
}

/** Calls `work` with a copy of the repository, which is removed after it. */
export async function withWorkbench(work: (bench: Workbench) => Promise<void>): Promise<void> {
  const bench = await Workbench.open();
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}
