/** Inputs that were recorded before a resume changed settings: they have the values from then. */
import { canonicalJson, hashJson } from "../canonical.ts";
import { inputHash, partsOf } from "./input_record.ts";
import type { StageTask } from "./task.ts";
import { type Intent, recordedIntent } from "../journal/tree.ts";

/**
 * As JSON values: the run's configuration, and its forms before settings that change no result were
 * changed; none: none were.
 */
export type Configs = { config: unknown; earlier?: readonly unknown[] };

type StageRequest = Pick<StageTask, "entry" | "stage" | "input">;

/** Whether the recorded input equals today's with the settings of an earlier configuration. */
export function isOfEarlierSettings(
  request: StageRequest,
  { config, earlier = [] }: Configs,
): boolean {
  return earlier.some((before) => {
    const then = new Before(before, config).input(request);
    return inputHash(request.stage, then) === request.entry.input_hash;
  });
}

function intentOf(entry: StageRequest["entry"]): Partial<Intent> {
  if (entry.intent === undefined) return {};
  return recordedIntent({ kind: "intent", key: entry.key, value: entry.intent });
}

type Block = Record<string, unknown>;

/** Inputs as they were when settings had different values. */
class Before {
  /** For each block, as canonical JSON: the same block at that time. */
  readonly #blocks = new Map<string, unknown>();
  /**
   * Name and value of each setting that was missing, for stages that receive a block field by
   * field.
   */
  readonly #added = new Set<string>();
  /** For each name and value of a setting: the values that it had then. */
  readonly #changed = new Map<string, unknown[]>();

  constructor(before: unknown, now: unknown) {
    this.#compare(before, now);
  }

  #compare(before: unknown, now: unknown): unknown {
    if (!isBlock(before) || !isBlock(now) || Array.isArray(before) !== Array.isArray(now)) {
      return before;
    }
    const kept: Block = {};
    for (const name of Object.keys({ ...before, ...now })) {
      // Not `in`: a name may be one that every object has, as toString.
      const value = Object.hasOwn(now, name) ? now[name] : undefined;
      if (Object.hasOwn(before, name)) {
        kept[name] = this.#compare(before[name], value);
        this.#note(name, { before: before[name], now: value });
      } else this.#added.add(fieldOf(name, value));
    }
    const then = Array.isArray(now) ? Object.values(kept) : kept;
    this.#blocks.set(canonicalJson(now), then);
    return then;
  }

  #note(name: string, { before, now }: { before: unknown; now: unknown }): void {
    if (canonicalJson(before ?? null) === canonicalJson(now ?? null)) return;
    const field = fieldOf(name, now);
    this.#changed.set(field, [...this.#changed.get(field) ?? [], before]);
  }

  /**
   * The input at that time. Fields of the input whose recorded values differ may be settings of a
   * block.
   */
  input({ input, entry }: StageRequest): unknown {
    const then = this.#then(input);
    const intent = intentOf(entry);
    const recorded = intent.input ?? intent.parts;
    if (!isBlock(then) || Array.isArray(then) || !isBlock(recorded)) return then;
    const hashes = intent.parts ?? partsOf(intent.input);
    const today = (name: string) =>
      fieldOf(name, Object.hasOwn(input as Block, name) ? (input as Block)[name] : undefined);
    const fields = Object.entries(then).filter(([name]) =>
      Object.hasOwn(recorded, name) ||
      !(this.#added.has(today(name)) || this.#changed.has(today(name)))
    );
    const whole = Object.fromEntries(fields);
    for (const name of Object.keys(recorded)) {
      const isRecorded = (value: unknown) => hashJson(value ?? null) === hashes[name];
      if (Object.hasOwn(whole, name) && isRecorded(whole[name])) continue;
      const value = this.#changed.get(today(name))?.find(isRecorded);
      if (value !== undefined) whole[name] = value;
    }
    return whole;
  }

  #then(value: unknown): unknown {
    if (!isBlock(value)) return value;
    const known = this.#blocks.get(canonicalJson(value));
    if (known !== undefined) return known;
    if (Array.isArray(value)) return value.map((item) => this.#then(item));
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.#then(part)]),
    );
  }
}

function fieldOf(name: string, value: unknown): string {
  return canonicalJson([name, value ?? null]);
}

function isBlock(value: unknown): value is Block {
  return typeof value === "object" && value !== null;
}
