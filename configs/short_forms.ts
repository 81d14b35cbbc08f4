import { parsePythonAlgorithm, PythonAlgorithm } from "../algs/mod.ts";
import { parsePythonReward } from "../rewards/mod.ts";
import type { Path } from "./settings/schema_walk.ts";

/** The value at `path` of the long form was written at `from`. */
export type Moved = { path: Path; from: Path };
type Fields = Record<string, unknown>;

/**
 * Expands the short forms: `algorithm: grpo`, `algorithm: my.py`, `reward: gsm8k`, `reward:
 * my.py:function`, `train: a.jsonl`, `inputs: a.jsonl`, `track: wandb`. Leaves anything else to the
 * schema. Expanding twice changes nothing.
 */
export function writeOut(value: unknown): { value: unknown; moved: Moved[] } {
  if (!isFields(value)) return { value, moved: [] };
  const moved: Moved[] = [];
  const out: Fields = { ...value };
  if ("algorithm" in out) {
    out.algorithm = algorithmBlock(out.algorithm, { at: ["algorithm"], moved });
  }
  if ("reward" in out) out.reward = rewardList(out.reward, { at: ["reward"], moved });
  if ("track" in out) {
    out.track = list(out.track, { at: ["track"], moved }).map((entry, i) =>
      typeof entry === "string" ? named(entry, { at: ["track", i], moved }) : entry
    );
  }
  if (isFields(out.data)) {
    const data: Fields = out.data = { ...out.data };
    for (const part of ["train", "eval"]) {
      if (part in data) data[part] = sourceList(data[part], { at: ["data", part], moved });
    }
  }
  if ("inputs" in out) out.inputs = sourceList(out.inputs, { at: ["inputs"], moved });
  if (isFields(out.decontaminate) && "sets" in out.decontaminate) {
    const { decontaminate } = out;
    const sets = sourceList(decontaminate.sets, { at: ["decontaminate", "sets"], moved });
    out.decontaminate = { ...decontaminate, sets };
  }
  if (isFields(out.evaluate)) out.evaluate = evaluateBlock(out.evaluate, moved);
  return { value: out, moved };
}

type Place = { at: Path; moved: Moved[] };

function named(name: string, { at, moved }: Place): Fields {
  moved.push({ path: [...at, "name"], from: at });
  return { name };
}

function algorithmBlock(block: unknown, { at, moved }: Place): unknown {
  const fields = typeof block === "string" ? named(block, { at, moved }) : block;
  if (!isFields(fields) || typeof fields.name !== "string") return fields;
  if (parsePythonAlgorithm(fields.name) === null) {
    return "source" in fields ? withSettings(fields, { at, moved }) : fields;
  }
  const { name, ...rest } = fields;
  const from = typeof block === "string" ? at : [...at, "name"];
  moved.push({ path: [...at, "source"], from }, { path: [...at, "name"], from });
  return withSettings({ name: "python", source: name, ...rest }, { at, moved });
}

/** The settings of a file are next to its name, as for other algorithms, or in `settings`. */
function withSettings(fields: Fields, { at, moved }: Place): Fields {
  const declared = Object.entries(fields).filter(([key]) => key in PythonAlgorithm.shape);
  const beside = Object.entries(fields).filter(([key]) => !(key in PythonAlgorithm.shape));
  if (beside.length === 0) return fields;
  const { settings = {}, ...rest } = Object.fromEntries(declared);
  if (!isFields(settings)) return fields; // The schema says what is wrong with it.
  for (const [key] of beside) moved.push({ path: [...at, "settings", key], from: [...at, key] });
  return { ...rest, settings: { ...settings, ...Object.fromEntries(beside) } };
}

/** A single entry in place of a list is a list of one. */
function list(value: unknown, { at, moved }: Place): unknown[] {
  if (Array.isArray(value)) return value;
  moved.push({ path: [...at, 0], from: at });
  return [value];
}

function rewardList(value: unknown, { at, moved }: Place): unknown[] {
  return list(value, { at, moved }).map((entry, i) =>
    rewardEntry(entry, { at: [...at, i], moved })
  );
}

function rewardEntry(entry: unknown, place: Place): unknown {
  const fields = typeof entry === "string" ? named(entry, place) : entry;
  if (
    !isFields(fields) || typeof fields.name !== "string" || parsePythonReward(fields.name) === null
  ) return fields;
  const { name, ...rest } = fields;
  const from = typeof entry === "string" ? place.at : [...place.at, "name"];
  place.moved.push({ path: [...place.at, "source"], from }, { path: [...place.at, "name"], from });
  return { name: "python", source: name, ...rest };
}

function sourceList(value: unknown, { at, moved }: Place): unknown[] {
  return list(value, { at, moved }).map((entry, i) => {
    if (typeof entry !== "string") return entry;
    moved.push({ path: [...at, i, "path"], from: [...at, i] });
    return { path: entry };
  });
}

function evaluateBlock(block: Fields, moved: Moved[]): Fields {
  if (!Array.isArray(block.sets)) return block;
  const sets = block.sets.map((set, i) => {
    if (!isFields(set)) return set;
    const at = ["evaluate", "sets", i];
    return {
      ...set,
      ...("data" in set && { data: sourceList(set.data, { at: [...at, "data"], moved }) }),
      ...("reward" in set && set.reward !== null &&
        { reward: rewardList(set.reward, { at: [...at, "reward"], moved }) }),
    };
  });
  return { ...block, sets };
}

export function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
