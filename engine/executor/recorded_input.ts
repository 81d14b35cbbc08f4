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
   * For each name and value of a setting that was different: the values that it had then, undefined
   * if it was missing. For stages that receive a block field by field.
   */
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
      const [was, is] = [own(before, name), own(now, name)];
      const isThere = Object.hasOwn(before, name);
      if (isThere) kept[name] = this.#compare(was, is);
      if (isThere && fieldOf(name, was) === fieldOf(name, is)) continue;
      this.#changed.set(fieldOf(name, is), [...this.#changed.get(fieldOf(name, is)) ?? [], was]);
    }
    const then = Array.isArray(now) ? Object.values(kept) : kept;
    this.#blocks.set(canonicalJson(now), then);
    return then;
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
    const today = (name: string) => fieldOf(name, own(input as Block, name));
    const fields = Object.entries(then).filter(([name]) =>
      Object.hasOwn(recorded, name) || !this.#changed.has(today(name))
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

/** Not `block[name]`: a name may be one that every object has, as toString. */
function own(block: Block, name: string): unknown {
  return Object.hasOwn(block, name) ? block[name] : undefined;
}

function fieldOf(name: string, value: unknown): string {
  return canonicalJson([name, value ?? null]);
}

function isBlock(value: unknown): value is Block {
  return typeof value === "object" && value !== null;
}
