import { isAbsolute, resolve } from "node:path";
import {
  DataError,
  hubDataset,
  hubHint,
  hubName,
  isHubDataset,
  isPattern,
  sourceFiles,
} from "../data/mod.ts";
import { isNothing } from "../engine/mod.ts";
import { parsePythonReward } from "../rewards/mod.ts";
import type { Issue } from "./problems/issue_text.ts";
import { type Path, valueAt } from "./settings/schema_walk.ts";
import { holds, shippedFiles } from "./shipped_files.ts";
import { didYouMean } from "./problems/suggest.ts";

type Kind =
  | "model"
  | "tokenizer"
  | "rows"
  | "output"
  | "reward"
  | "algorithm"
  | "python"
  | "address";
type Named = { path: Path; kind: Kind; text: string };

/**
 * Every file that a configuration names. Works on blocks that may be broken: skips what is not
 * text.
 */
export function namedFiles(value: unknown): Named[] {
  const list = (path: Path) =>
    Array.from(
      { length: (valueAt(value, path) as unknown[] | undefined)?.length ?? 0 },
      (_, i) => i,
    );
  const sets = list(["evaluate", "sets"]).map((i): Path => ["evaluate", "sets", i]);
  const places: { path: Path; kind: Kind }[] = [
    ...["model", "value_model", "reference"].map((block) => ({
      path: [block, "path"],
      kind: "model" as const,
    })),
    ...["train", "eval"].flatMap((part) =>
      list(["data", part]).map((i) => ({ path: ["data", part, i, "path"], kind: "rows" as const }))
    ),
    { path: ["algorithm", "source"], kind: "algorithm" },
    { path: ["output"], kind: "output" },
    { path: ["tokenizer", "path"], kind: "tokenizer" },
    ...[["inputs"], ["decontaminate", "sets"]].flatMap((part) =>
      list(part).map((i) => ({ path: [...part, i, "path"], kind: "rows" as const }))
    ),
    ...sets.flatMap((set) =>
      list([...set, "data"]).map((i) => ({
        path: [...set, "data", i, "path"],
        kind: "rows" as const,
      }))
    ),
    ...[["reward"], ...sets.map((set) => [...set, "reward"])].flatMap((rewards) =>
      list(rewards).flatMap((i) => [
        { path: [...rewards, i, "source"], kind: "reward" as const },
        { path: [...rewards, i, "path"], kind: "model" as const },
      ])
    ),
    ...["trainer", "value_model", "sampler", "tokenizer"].map((block) => ({
      path: [block, "python"],
      kind: "python" as const,
    })),
    ...list(["track"]).flatMap((i) => [
      { path: ["track", i, "python"], kind: "python" as const },
      { path: ["track", i, "dir"], kind: "output" as const },
      { path: ["track", i, "uri"], kind: "address" as const },
    ]),
  ];
  return places.flatMap(({ path, kind }) => {
    const text = valueAt(value, path);
    return typeof text === "string" && text !== "" ? [{ path, kind, text }] : [];
  });
}

/**
 * The absolute form of a named file. A bare command (`python3.12`) stays as it is, to be found by
 * PATH, and so does what is at the hub. A directory that is called like a model comes first.
 */
export function absolute({ kind, text }: Pick<Named, "kind" | "text">, dir: string): string {
  if (kind === "python" && !text.includes("/")) return text;
  if (kind === "model" && hubName(text) !== null && !isHere(resolve(dir, text))) return text;
  if (kind === "rows" && isHubDataset(text)) return text;
  if (kind === "address" && text.includes(":")) return text;
  const home = text.startsWith("~/") ? Deno.env.get("HOME") : undefined;
  if (home !== undefined) return resolve(home, text.slice(2));
  return isAbsolute(text) ? text : resolve(dir, text);
}

/** Whether something is there, or `fetch` puts it there. */
function isHere(path: string): boolean {
  if (shippedFiles().some((files) => holds(files, path))) return true;
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}

/** What is wrong with a file that `config` names; null if it can be used. */
export async function fileIssue(
  { path, kind, text }: Named,
  config: string,
): Promise<Issue | null> {
  const message = await CHECKS[kind](text);
  if (message === null) return null;
  const known = (kind === "model" || kind === "rows") &&
    shippedFiles().some((files) => holds(files, text));
  return { path, message: known ? `${message}; fetch it: deno task rl fetch ${config}` : message };
}

const CHECKS: Record<Kind, (text: string) => Promise<string | null>> = {
  async model(dir) {
    if (hubName(dir) !== null) return null; // The hub is asked in the workers' environment.
    const found = await kindOf(dir);
    if (found !== "directory") {
      const [what, more] = found === "none"
        ? ["no directory", ", and it is not a model of the hub: OWNER/NAME or OWNER/NAME@REVISION"]
        : ["a file, not a model directory,", ""];
      return `there is ${what} at ${dir}${more}`;
    }
    const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
    const lacks = [
      ...(names.includes("config.json") ? [] : ["config.json"]),
      ...(names.some((name) => name.endsWith(".safetensors")) ? [] : ["weights (*.safetensors)"]),
    ];
    if (lacks.length === 0) return null;
    return `${dir} is not a Hugging Face model directory: it has no ${lacks.join(" and no ")}`;
  },
  async tokenizer(dir) {
    if (await kindOf(dir) !== "directory") return `${dir} is not a directory`;
    const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
    if (names.some((name) => /^(tokenizer.*|vocab.*|.*\.model)$/.test(name))) return null;
    return `${dir} has no tokenizer files (tokenizer.json or a vocabulary)`;
  },
  async rows(file) {
    try {
      if (isHubDataset(file)) {
        hubDataset(file); // Only its form: the hub is asked in the workers' environment.
        return null;
      }
      const found = await kindOf(file);
      if (found === "file") return null;
      if (found === "none" && !isPattern(file)) {
        return `there is no file at ${file}${hubHint(file)}`;
      }
      await sourceFiles({ path: file });
      return null;
    } catch (error) {
      if (error instanceof DataError) return error.message;
      throw error;
    }
  },
  async reward(source) {
    const parsed = parsePythonReward(source);
    if (parsed === null) return null; // The schema says what is wrong with it.
    const { path, function: name } = parsed;
    if (await kindOf(path) !== "file") return `there is no file at ${path}`;
    const text = await Deno.readTextFile(path);
    // A function may also be imported or assigned, so only a name that the file never mentions is
    // refused.
    if (new RegExp(`\\b${name}\\b`).test(text)) return null;
    const defined = [...text.matchAll(/^(?:async\s+)?def\s+(\w+)/gm)].map((match) => match[1]!);
    return `${path} has no function '${name}'${didYouMean(name, defined)}`;
  },
  async algorithm(path) {
    if (!path.endsWith(".py")) return null; // The schema says what is wrong with it.
    if (await kindOf(path) !== "file") return `there is no file at ${path}`;
    const text = await Deno.readTextFile(path);
    if (/\bloss\b/.test(text)) return null;
    const defined = [...text.matchAll(/^def\s+(\w+)/gm)].map((match) => match[1]!);
    return `${path} has no function 'loss'${didYouMean("loss", defined)}`;
  },
  async python(command) {
    if (!command.includes("/") || await kindOf(command) === "file") return null;
    return `there is no Python at ${command}; name the interpreter's file, or leave it null for ` +
      "a managed environment";
  },
  // Whether a run may write there is asked when one starts: a prepared directory is no mistake.
  async output(dir) {
    return await kindOf(dir) === "file" ? `${dir} is a file, not a directory` : null;
  },
  address: () => Promise.resolve(null), // Nothing answers yet, perhaps; then points wait.
};

async function kindOf(path: string): Promise<"file" | "directory" | "none"> {
  try {
    return (await Deno.stat(path)).isDirectory ? "directory" : "file";
  } catch (error) {
    if (isNothing(error)) return "none";
    throw error;
  }
}
