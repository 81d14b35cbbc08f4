/** Inputs that an older version of the code recorded: settings that have come since are missing from them. */
import { canonicalJson, sha256Hex } from "./canonical.ts";
import type { StageTask } from "./executor_task.ts";
import type { Intent } from "./journal_tree.ts";
import { recordedValue } from "./recorded_value.ts";
import type { Stage } from "./stage.ts";

/** The hash under which the input of a stage is recorded. `text`: its canonical JSON. */
export function inputHash({ name, version }: Pick<Stage, "name" | "version">, text: string): string {
  return sha256Hex(`${name}@${version}\n${text}`);
}

/** Both as JSON values: the run's configuration as it was recorded, and as it is read today. */
export type Configs = { recorded: unknown; resolved: unknown };

/**
 * Whether the recorded input is today's but for settings that have come since. Those of the run's configuration are read as what
 * they meant then; other fields must have their defaults. A large input is recorded as hashes only: its older form is made.
 */
export function meansTheSame({ entry, stage, input }: Pick<StageTask, "entry" | "stage" | "input">, configs?: Configs) {
  const intent = entry.intent === undefined
    ? {}
    : recordedValue({ kind: "intent", key: entry.key, value: entry.intent }) as Partial<Intent>;
  const recorded = intent.input ?? intent.parts;
  const added = configs ? new Added(configs) : null;
  const older = added ? added.taken(input, recorded) : input;
  const candidates = intent.input === undefined ? [older, onlyFields(older, recorded)] : [intent.input];
  return candidates.some((candidate) =>
    inputHash(stage, canonicalJson(candidate)) === entry.input_hash &&
    asParsed(stage, candidate) === asParsed(stage, older)
  );
}

/** What a body would be given, as canonical JSON; null if it would be refused. */
function asParsed(stage: Stage, input: unknown): string | null {
  const parsed = stage.input.safeParse(input);
  return parsed.success ? canonicalJson(parsed.data) : null;
}

type Block = Record<string, unknown>;

/** The settings that reading a recorded configuration has added to it. */
class Added {
  /** For each block, as canonical JSON: the same block as it was recorded. */
  readonly #blocks = new Map<string, unknown>();
  /** Name and value of each, as a stage has them that is given a block field by field. */
  readonly #fields = new Set<string>();

  constructor({ recorded, resolved }: Configs) {
    this.#compare(recorded, resolved);
  }

  #compare(before: unknown, now: unknown): unknown {
    if (!isBlock(before) || !isBlock(now) || Array.isArray(before) !== Array.isArray(now)) return now;
    const kept: Block = {};
    for (const [name, value] of Object.entries(now)) {
      if (name in before) kept[name] = this.#compare(before[name], value);
      else this.#fields.add(fieldOf(name, value));
    }
    const older = Array.isArray(now) ? Object.values(kept) : kept;
    this.#blocks.set(canonicalJson(now), older);
    return older;
  }

  /** An input without them. `recorded`: the fields that it was recorded with, where that is known. */
  taken(input: unknown, recorded: unknown): unknown {
    const older = this.#older(input);
    if (!isBlock(older) || Array.isArray(older) || !isBlock(recorded)) return older;
    const entries = Object.entries(older);
    return Object.fromEntries(
      entries.filter(([name]) => name in recorded || !this.#fields.has(fieldOf(name, (input as Block)[name]))),
    );
  }

  #older(value: unknown): unknown {
    if (!isBlock(value)) return value;
    const known = this.#blocks.get(canonicalJson(value));
    if (known !== undefined) return known;
    if (Array.isArray(value)) return value.map((item) => this.#older(item));
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.#older(part)]));
  }
}

function fieldOf(name: string, value: unknown): string {
  return canonicalJson([name, value ?? null]);
}

function onlyFields(value: unknown, fields: unknown): unknown {
  if (!isBlock(value) || Array.isArray(value) || !isBlock(fields)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name in fields));
}

function isBlock(value: unknown): value is Block {
  return typeof value === "object" && value !== null;
}
