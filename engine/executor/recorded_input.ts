/** Inputs that an older version of the code recorded: they lack the settings added since. */
import { canonicalJson, hashJson } from "../canonical.ts";
import { inputHash, partsOf } from "./input_record.ts";
import type { StageTask } from "./task.ts";
import { type Intent, recordedIntent } from "../journal/tree.ts";
import type { Stage } from "../graph/stage.ts";

/**
 * As JSON values: the run's configuration as recorded, and as read today. `earlier`: its forms
 * before settings that change no result were changed; empty: none were.
 */
export type Configs = { recorded: unknown; resolved: unknown; earlier?: readonly unknown[] };

type StageRequest = Pick<StageTask, "entry" | "stage" | "input">;

/**
 * Whether the recorded input equals today's except for settings that are newer or may change. Those
 * of the run's configuration have their values from then; other fields must have their defaults.
 */
export function meansTheSame(request: StageRequest, configs?: Configs): boolean {
  if (configs === undefined) return isOlder(request, request.input);
  const { recorded, resolved, earlier = [] } = configs;
  return [...earlier, resolved].some((before) => {
    const unchanged = {
      ...request,
      input: new Before(before, resolved, { values: true }).input(request),
    };
    const older = new Before(recorded, before, { values: false }).input(unchanged);
    return isOlder(request, older) || (before !== resolved && isOlder(request, unchanged.input));
  });
}

/**
 * Whether `older`, what the stage would have received then, equals the record. A large input is
 * recorded only as hashes.
 */
function isOlder({ entry, stage }: StageRequest, older: unknown): boolean {
  const { input, parts } = intentOf(entry);
  const candidates = input === undefined ? [older, onlyFields(older, parts)] : [input];
  return candidates.some((candidate) =>
    inputHash(stage, candidate) === entry.input_hash &&
    asParsed(stage, candidate) === asParsed(stage, older)
  );
}

function intentOf(entry: StageRequest["entry"]): Partial<Intent> {
  if (entry.intent === undefined) return {};
  return recordedIntent({ kind: "intent", key: entry.key, value: entry.intent });
}

/** What a body would receive, as canonical JSON; null if it would be refused. */
function asParsed(stage: Stage, input: unknown): string | null {
  const parsed = stage.input.safeParse(input);
  return parsed.success ? canonicalJson(parsed.data) : null;
}

type Block = Record<string, unknown>;

/**
 * Inputs from before settings were in the run's configuration, and with `values` from when settings
 * had different values: for settings that must not change, a different value makes a different
 * input.
 */
class Before {
  /** For each block, as canonical JSON: the same block at that time. */
  readonly #blocks = new Map<string, unknown>();
  /**
   * Name and value of each setting that was missing, for stages that receive a block field by
   * field.
   */
  readonly #added = new Set<string>();
  /** For each name of a setting: the values that it had then but no longer has. */
  readonly #changed = new Map<string, unknown[]>();

  constructor(before: unknown, now: unknown, readonly options: { values: boolean }) {
    this.#compare(before, now);
  }

  #compare(before: unknown, now: unknown): unknown {
    const { values } = this.options;
    if (!isBlock(before) || !isBlock(now) || Array.isArray(before) !== Array.isArray(now)) {
      return values ? before : now;
    }
    const kept: Block = {};
    for (const name of Object.keys(values ? { ...before, ...now } : now)) {
      if (!(name in before)) this.#added.add(fieldOf(name, now[name]));
      else kept[name] = this.#compare(before[name], now[name]);
      if (values && name in before) this.#note(name, { before: before[name], now: now[name] });
    }
    const older = Array.isArray(now) ? Object.values(kept) : kept;
    this.#blocks.set(canonicalJson(now), older);
    return older;
  }

  #note(name: string, { before, now }: { before: unknown; now: unknown }): void {
    if (canonicalJson(before ?? null) === canonicalJson(now ?? null)) return;
    this.#changed.set(name, [...this.#changed.get(name) ?? [], before]);
  }

  /**
   * The input at that time. Fields of the input whose recorded values differ may be settings of a
   * block.
   */
  input({ input, entry }: StageRequest): unknown {
    const older = this.#older(input);
    const intent = intentOf(entry);
    const recorded = intent.input ?? intent.parts;
    if (!isBlock(older) || Array.isArray(older) || !isBlock(recorded)) return older;
    const hashes = intent.parts ?? partsOf(intent.input);
    const fields = Object.entries(older).filter(([name]) =>
      name in recorded ||
      !(this.#added.has(fieldOf(name, (input as Block)[name])) || this.#changed.has(name))
    );
    const then = { ...Object.fromEntries(fields) };
    for (const name of Object.keys(recorded)) {
      const isRecorded = (value: unknown) => hashJson(value ?? null) === hashes[name];
      if (name in then && isRecorded(then[name])) continue;
      const value = this.#changed.get(name)?.find(isRecorded);
      if (value !== undefined) then[name] = value;
    }
    return then;
  }

  #older(value: unknown): unknown {
    if (!isBlock(value)) return value;
    const known = this.#blocks.get(canonicalJson(value));
    if (known !== undefined) return known;
    if (Array.isArray(value)) return value.map((item) => this.#older(item));
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.#older(part)]),
    );
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
