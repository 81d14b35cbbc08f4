import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { brokenText, utf8Text } from "../data/mod.ts";
import { withFileFacts } from "./algorithm_file.ts";
import { absolute, fileIssue, namedFiles } from "./files.ts";
import { type Issue, issuesOf, oneOf, UNKNOWN_KEY } from "./problems/issue_text.ts";
import { type Override, parseOverride, setAt } from "./settings/overrides.ts";
import { ConfigError, type ConfigProblem } from "./problems/problem.ts";
import type { Blocks } from "./rules/rule_blocks.ts";
import { brokenRules } from "./rules/rules.ts";
import { type Config, type Flow, FLOWS } from "./schema.ts";
import { type UsedProfile, withProfile } from "./settings/profile_settings.ts";
import type { Path } from "./settings/schema_walk.ts";
import { isFields, type Moved, writeOut } from "./short_forms.ts";
import { type Position, YamlFile } from "./yaml_file.ts";

/** Overrides of a configuration, and how its paths are read. */
export type LoadOptions = {
  /** `a.b=c`, applied in order. */
  overrides?: readonly string[];
  /** What relative paths in overrides start from. Those in the file start from the file. */
  cwd?: string;
  /** Skips the check for missing files, for the command that creates them. */
  files_missing?: boolean;
};

/**
 * The origin of a leaf's value. `where`: `file:line:col`, `override a.b`, a profile with either of
 * these, or empty.
 */
export type Origin = {
  path: string;
  value: unknown;
  origin: "file" | "override" | "profile" | "default";
  where: string;
};

/** A resolved configuration, and where each of its values comes from. */
export type LoadedConfig = {
  config: Config;
  file: string;
  origins: Origin[];
  profile: UsedProfile | null;
};

/**
 * Reads, checks and resolves a configuration: short forms written out, defaults filled in, paths
 * absolute.
 * @throws {ConfigError} With all problems at once.
 */
export async function loadConfig(file: string, options: LoadOptions = {}): Promise<LoadedConfig> {
  let text: string;
  try {
    text = utf8Text(await Deno.readFile(file));
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound
      ? "there is no such file"
      : (error as Error).message;
    throw new ConfigError([{
      where: file,
      path: "",
      message: `cannot read the configuration: ${why}`,
      position: null,
    }]);
  }
  return await parseConfig(text, { ...options, file });
}

/**
 * `loadConfig` for a text in memory. `file` names it in problems, and relative paths start from it.
 */
export async function parseConfig(
  text: string,
  options: LoadOptions & { file: string },
): Promise<LoadedConfig> {
  const source = new ConfigSource(text, options);
  const { problems } = source;
  if (problems.some(({ fatal }) => fatal)) {
    throw new ConfigError(problems.map(({ problem }) => problem));
  }
  const value = await withFileFacts(source.value);
  const { config, issues } = check(value);
  const named = options.files_missing ? [] : namedFiles(config ?? value);
  const files = await Promise.all(named.map((one) => fileIssue(one, options.file)));
  const known = new Set(issues.map(({ path }) => path.join(".")));
  const all = [
    ...issues,
    ...files.filter((issue) => issue !== null && !known.has(issue.path.join("."))),
  ] as Issue[];
  const found = [
    ...problems.map(({ problem }) => problem),
    ...all.map((issue) => source.problem(issue)),
  ];
  if (config === undefined || found.length > 0) throw new ConfigError(inOrder(found));
  const origins = leaves(config).map(([path, leaf]) => source.origin(path, leaf));
  return { config, file: options.file, origins, profile: source.profile };
}

/**
 * A resolved configuration from a record; it no longer needs a file. @throws {z.ZodError} If it is
 * invalid.
 */
export function readConfig(recorded: unknown): Config {
  const flow = (recorded as { flow?: Flow } | null)?.flow;
  const schema = flow === undefined ? undefined : FLOWS[flow];
  if (schema === undefined) {
    throw new TypeError(`Cannot read the recorded configuration: its flow is ${flow}`);
  }
  return schema.parse(recorded);
}

/** Types first, then the rules between the blocks whose types are right. */
function check(value: unknown): { config?: Config; issues: Issue[] } {
  if (!isFields(value)) {
    return { issues: [{ path: [], message: "expected a block of keys, at least `flow:`" }] };
  }
  const broken = brokenText(value);
  if (broken !== null) {
    const { path, why: message } = broken;
    const key = !String(path.at(-1)).isWellFormed();
    return { issues: [{ path, message, key }] };
  }
  const flow = value.flow;
  if (typeof flow !== "string" || !Object.hasOwn(FLOWS, flow)) {
    return { issues: [{ path: ["flow"], message: oneOf(Object.keys(FLOWS), flow) }] };
  }
  const schema: z.ZodObject = FLOWS[flow as Flow];
  const parsed = schema.safeParse(value);
  if (parsed.success) {
    return { config: parsed.data as Config, issues: brokenRules(parsed.data as Blocks) };
  }
  const blocks: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(schema.shape)) {
    const block = (field as z.ZodType).safeParse(value[key]);
    if (block.success) blocks[key] = block.data;
  }
  const problems = issuesOf(parsed.error, { schema, value }).map(orOfAnotherFlow);
  return { issues: [...problems, ...brokenRules(blocks as Blocks)] };
}

/** An unknown key that nothing here resembles may be known to other flows. */
function orOfAnotherFlow(issue: Issue): Issue {
  if (issue.path.length !== 1 || issue.message !== UNKNOWN_KEY) return issue;
  const [key] = issue.path as [string];
  const flows = Object.entries<z.ZodObject>(FLOWS).flatMap(([flow, { shape }]) =>
    Object.hasOwn(shape, key) ? [flow] : []
  );
  if (flows.length === 0) return issue;
  return { ...issue, message: `${UNKNOWN_KEY}; only these flows have it: ${flows.join(", ")}` };
}

const PROFILE: Path = ["algorithm", "profile"];

type Found = { problem: ConfigProblem; fatal: boolean };

/** The file with its overrides, and the origin of each value. */
class ConfigSource {
  readonly value: unknown;
  readonly problems: Found[] = [];
  readonly profile: UsedProfile | null;
  readonly #file: string;
  readonly #yaml: YamlFile;
  readonly #moved: Moved[];
  readonly #overrides: Override[] = [];

  constructor(
    text: string,
    { file, overrides = [], cwd = Deno.cwd() }: LoadOptions & { file: string },
  ) {
    this.#file = file;
    this.#yaml = new YamlFile(text);
    for (const { message, fatal, path, ...position } of this.#yaml.problems) {
      this.problems.push({
        fatal,
        problem: { where: this.#where(position), path: path.join("."), message, position },
      });
    }
    const written = writeOut(this.#yaml.value);
    this.#moved = written.moved;
    let value = absolutePaths(written.value, dirname(resolve(cwd, file)));
    for (const override of overrides) value = this.#override(value, { text: override, cwd });
    ({ value: this.value, profile: this.profile } = withProfile(value));
    this.#refuseIdleProfile();
  }

  problem({ path, message, key }: Issue): ConfigProblem {
    const source = this.#sourceOf(path);
    const override = this.#overriding(source);
    const position = override ? null : this.#yaml.position(source, { moved: this.#moved, key });
    const where = position === null ? nameOf(override!) : this.#where(position);
    return { where, path: path.join(".").toWellFormed(), message, position };
  }

  origin(path: Path, value: unknown): Origin {
    const override = this.#overriding(path);
    const at = { path: path.join("."), value };
    const source = this.#sourceOf(path);
    if (source !== path) {
      return {
        ...at,
        origin: "profile",
        where: `profile ${this.profile!.name} (${this.origin(source, null).where})`,
      };
    }
    if (override) return { ...at, origin: "override", where: nameOf(override) };
    if (!this.#yaml.says(path, this.#moved)) return { ...at, origin: "default", where: "" };
    return {
      ...at,
      origin: "file",
      where: this.#where(this.#yaml.position(path, { moved: this.#moved })),
    };
  }

  #override(value: unknown, { text, cwd }: { text: string; cwd: string }): unknown {
    const override = parseOverride(text);
    const refuse = (message: string) => {
      const problem = {
        where: `override ${text.split("=")[0]}`,
        path: "",
        message,
        position: null,
      };
      this.problems.push({ fatal: false, problem });
      return value;
    };
    if ("message" in override) return refuse(override.message);
    try {
      const before = new Set(namedFiles(value).map((named) => JSON.stringify(named)));
      const { value: set } = writeOut(setAt(value, { path: override.path, to: override.value }));
      this.#overrides.push(override);
      return absolutePaths(set, cwd, (named) => !before.has(JSON.stringify(named)));
    } catch (error) {
      if (error instanceof RangeError) return refuse(error.message);
      throw error;
    }
  }

  /** A setting that a profile filled in has the profile's place. */
  #sourceOf(path: Path): Path {
    const filled = path.length === 2 && path[0] === PROFILE[0] &&
      String(path[1]) in (this.profile?.set ?? {});
    return filled ? PROFILE : path;
  }

  /**
   * A profile added to a resolved configuration, such as a run's, finds every setting written and
   * would do nothing.
   */
  #refuseIdleProfile(): void {
    const override = this.#overriding(PROFILE);
    if (!override || !this.profile || Object.keys(this.profile.set).length > 0) return;
    if (Object.keys(this.profile.written).length === 0) return;
    const message =
      "sets nothing because all of its settings are already written: replace the whole " +
      "algorithm, e.g. " +
      `algorithm={name: NAME, profile: ${this.profile.name}}`;
    this.problems.push({
      fatal: false,
      problem: { where: nameOf(override), path: "", message, position: null },
    });
  }

  /** The last override that set this path or a block around it, or that alone created it. */
  #overriding(path: Path): Override | undefined {
    return this.#overrides.findLast((set) =>
      startsWith(path, set.path) || this.#isImplied(path, set.path)
    );
  }

  /** A path that only exists because an override went through it, as in `trianer.ranks=2`. */
  #isImplied(path: Path, override: Path): boolean {
    return path.length > 0 && startsWith(override, path) && !this.#yaml.says(path, this.#moved);
  }

  #where({ line, column }: Position): string {
    return `${this.#file}:${line}:${column}`;
  }
}

function startsWith(path: Path, prefix: Path): boolean {
  return prefix.length <= path.length &&
    prefix.every((step, i) => String(step) === String(path[i]));
}

function nameOf(override: Override): string {
  return `override ${override.path.join(".")}`;
}

type NamedFile = ReturnType<typeof namedFiles>[number];

function absolutePaths(
  value: unknown,
  dir: string,
  only: (named: NamedFile) => boolean = () => true,
): unknown {
  return namedFiles(value).filter(only).reduce(
    (so_far, named) => setAt(so_far, { path: named.path, to: absolute(named, dir) }),
    value,
  );
}

/** Every leaf of a value with its path. Empty blocks and lists are leaves. */
function leaves(value: unknown, path: Path = []): [Path, unknown][] {
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? value.map((entry, i) => [i, entry])
    : isFields(value)
    ? Object.entries(value)
    : [];
  return entries.length === 0
    ? [[path, value]]
    : entries.flatMap(([step, part]) => leaves(part, [...path, step]));
}

/** In the file's order, overrides last. */
function inOrder(problems: ConfigProblem[]): ConfigProblem[] {
  const at = ({ position }: ConfigProblem) => position ?? { line: Infinity, column: 0 };
  return [...problems].sort((a, b) =>
    at(a).line === at(b).line ? at(a).column - at(b).column : at(a).line < at(b).line ? -1 : 1
  );
}
