import { type Columns, read } from "./row_fields.ts";
import { fieldsNamed } from "./prompt_template.ts";
import type { SourceConfig } from "../source_config.ts";

/** A field that tells a shape: its path in the row, and what it must be; absent: not null. */
type Field = string | { path: string; is: keyof typeof IS };

const IS = {
  messages: Array.isArray,
  verdict: (value: unknown) => typeof value === "boolean" || value === 0 || value === 1,
};

/** Where a shape keeps what a run needs; what is absent has its usual place. */
export type ShapeKeys = {
  messages?: string;
  /** A whole text, with no prompt. */
  text?: string;
  prompt?: string;
  completion?: string;
  answer?: string;
  /** The system's message beside a Responses request. */
  instructions?: string;
};

/** A shape of rows that people bring, told by its fields. */
type RowShape = {
  name: string;
  /** The frameworks that document it. */
  from: string;
  /** It is this shape if the row has all of them. */
  has: readonly Field[];
  /** Fields that such rows often have: named as reasons too. */
  often?: readonly string[];
  keys: ShapeKeys;
  preference?: true;
  /** What a person should know before using rows of this shape as they are. */
  advice?: string;
};

/**
 * The shapes, most particular first: the first one that a row has is its shape. Sources, as of mid
 * 2026: the documentation of each framework's data format.
 */
export const ROW_SHAPES: readonly RowShape[] = [
  {
    name: "preference",
    from: "TRL preference",
    has: ["prompt", "chosen", "rejected"],
    often: ["margin"],
    keys: {},
    preference: true,
  },
  {
    name: "preference_implicit_prompt",
    from: "TRL preference, implicit prompt",
    has: ["chosen", "rejected"],
    often: ["margin"],
    keys: {},
    preference: true,
  },
  {
    name: "nemo_gym",
    from: "NeMo-Gym",
    has: ["responses_create_params.input"],
    often: ["responses_create_params.tools", "agent_ref", "expected_answer"],
    keys: {
      prompt: "responses_create_params.input",
      instructions: "responses_create_params.instructions",
      answer: "expected_answer",
    },
  },
  {
    name: "messages",
    from: "TRL and prime-rl SFT",
    has: ["messages"],
    often: ["tools", "tool_defs"],
    keys: { messages: "messages" },
  },
  {
    name: "verl",
    from: "verl",
    has: ["prompt", "reward_model.ground_truth"],
    often: ["data_source", "ability", "extra_info.index"],
    keys: { prompt: "prompt" },
  },
  {
    name: "feynrl",
    from: "FeynRL",
    has: [{ path: "prompt", is: "messages" }, "answer", "solution"],
    keys: { prompt: "prompt" },
    advice:
      "In FeynRL's files `answer` is the trace and `solution` the ground truth: for them set " +
      "fields: { answer: solution, completion: answer }",
  },
  {
    name: "unpaired_preference",
    from: "TRL unpaired preference",
    has: ["prompt", "completion", { path: "label", is: "verdict" }],
    keys: { prompt: "prompt" },
    advice:
      "`label` says whether a completion is good; only `algorithm: kto` learns from it, other " +
      "runs read completions to learn",
  },
  {
    name: "prompt_completion",
    from: "TRL and prime-rl SFT",
    has: ["prompt", "completion"],
    often: ["tools", "tool_defs", "answer"],
    keys: { prompt: "prompt" },
  },
  {
    name: "prompt_answer",
    from: "verifiers, hub data sets",
    has: ["prompt", "answer"],
    often: ["info", "task"],
    keys: { prompt: "prompt" },
  },
  { name: "prompt", from: "TRL prompt-only", has: ["prompt"], keys: { prompt: "prompt" } },
  {
    name: "question_answer",
    from: "verifiers, GSM8K",
    has: ["question", "answer"],
    often: ["info", "task"],
    keys: { prompt: "question" },
  },
  { name: "question", from: "hub data sets", has: ["question"], keys: { prompt: "question" } },
  {
    name: "problem_answer",
    from: "MATH, DeepScaleR",
    has: ["problem", "answer"],
    often: ["solution"],
    keys: { prompt: "problem" },
  },
  { name: "problem", from: "hub data sets", has: ["problem"], keys: { prompt: "problem" } },
  {
    name: "openrlhf",
    from: "OpenRLHF",
    has: ["input"],
    often: ["output", "label"],
    keys: { prompt: "input", completion: "output", answer: "label" },
  },
  {
    name: "openrlhf_messages",
    from: "OpenRLHF",
    has: ["context_messages"],
    often: ["label"],
    keys: { prompt: "context_messages", answer: "label" },
  },
  {
    name: "text",
    from: "TRL language modeling",
    has: ["text"],
    keys: { text: "text" },
  },
];

/**
 * A bit for each field of the row itself that tells a shape: one number says which of them a row
 * has, and most shapes need not be looked for.
 */
const BITS = new Map<string, number>();
for (const field of ROW_SHAPES.flatMap(({ has }) => has)) {
  const path = pathOf(field);
  const outer = path.split(".", 1)[0]!;
  const bit = BITS.get(outer) ?? 2 ** new Set(BITS.values()).size;
  BITS.set(outer, bit).set(path, bit); // A column may have the whole path as its name.
}

/** What a row's shape is called, and where the shape keeps what. */
export type FoundShape = { name: string; keys: ShapeKeys; preference?: true };

/** The shapes, what is found of their rows, and the bits that these have. */
const CANDIDATES = ROW_SHAPES.map((shape) => {
  const { name, keys, preference } = shape;
  const found: FoundShape = { name, keys, preference };
  return {
    shape,
    found,
    bits: shape.has.reduce((bits, field) => bits | BITS.get(pathOf(field))!, 0),
  };
});

/** Of a row that a source's `fields` say how to read. */
const CONFIGURED: FoundShape = { name: "fields", keys: {} };
/** Of a row that no shape fits. */
const UNKNOWN: FoundShape = { name: "unknown", keys: {} };

/**
 * The shape of a row. Configured `fields` come first; `preference: false` leaves out shapes of
 * preferences, whose prompt alone is read. A field that is null is not there: Parquet and CSV write
 * null for what a row lacks.
 */
export function shapeOf(
  columns: Columns,
  fields: SourceConfig["fields"],
  { preference = true }: { preference?: boolean } = {},
): FoundShape {
  if (fields.prompt !== undefined || (preference && fields.chosen !== undefined)) {
    return CONFIGURED;
  }
  let present = 0;
  for (const name in columns) present |= BITS.get(name) ?? 0;
  for (const { shape, found, bits } of CANDIDATES) {
    if ((present & bits) !== bits || (shape.preference && !preference)) continue;
    if (shape.has.every((field) => holds(columns, field))) return found;
  }
  return UNKNOWN;
}

/** The fields that say that a row has the shape that was found. `fields`: of the source. */
export function shapeFields(
  columns: Columns,
  { found, fields }: { found: FoundShape; fields: SourceConfig["fields"] },
): string[] {
  if (found === CONFIGURED) return Object.values(fields).flatMap(fieldsNamed);
  const shape = CANDIDATES.find((candidate) => candidate.found === found)?.shape;
  if (shape === undefined) return [];
  return [...shape.has, ...shape.often ?? []].filter((field) => holds(columns, field)).map(pathOf);
}

function pathOf(field: Field): string {
  return typeof field === "string" ? field : field.path;
}

function holds(columns: Columns, field: Field): boolean {
  const [path, is] = typeof field === "string" ? [field, null] : [field.path, field.is];
  const value = read(columns, path);
  return value !== undefined && value !== null && (is === null || IS[is](value));
}
