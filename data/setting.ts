import { z } from "zod";

/**
 * What a fork may do with a setting. `free`: anything. `rounds`: raise it, or lower it to the
 * rounds that exist. Otherwise the prefix fixes it, from some point on, for the reason `why`:
 * - `start`: in every fork.
 * - `round_1`: once the prefix has a round (of the block's `loop`, if it has one).
 * - `rows`: once rows were trained on, including a warm-up's.
 * - `after_warmup`: in every fork at a round after the warm-up.
 *
 * `on_or_off`: only a change between 0 and another value is refused. `start: "free"`: a run that
 * starts from a checkpoint may change it, because it rebuilds nothing of what came before.
 */
export type InFork =
  | "free"
  | "rounds"
  | {
    fixed: "start" | "round_1" | "rows" | "after_warmup";
    why: string;
    on_or_off?: true;
    start?: "free";
  };

/**
 * What `resume RUN a.b=c` may do. `refused`: results depend on the setting. `replan`: they depend
 * on it up to rounding, and the change is recorded. The others change no result. `workers`: only
 * worker processes get the new value, and the graph keeps the old one, so a round is split as
 * before. `stages`: a stage's input also has it, and records made with the old value stay valid.
 */
type InResume = "refused" | "replan" | "workers" | "stages";

/** All facts about a setting besides its type, its default and its description. */
export type SettingFacts = {
  /** The unit of its number: `s`, `GiB`, `tokens`, `rounds`. Not inherited from its block. */
  unit?: string;
  /**
   * Whether the recorded numerics of a version have it: the bits of an optimizer step depend on it.
   */
  numerics: boolean;
  fork: InFork;
  resume: InResume;
  /** The loop whose rounds read it; without one, all. */
  loop?: string;
  /** Whether it decides which rows exist: a fork that changes it reads them again. */
  rows?: true;
};

/**
 * The facts of every setting, declared with the setting. A block's facts apply to everything in it,
 * unless a setting says otherwise:
 *
 * ```ts
 * timeout_ms: z.int().default(10_000).register(setting, { unit: "ms", resume: "stages" })
 * ```
 */
export const setting: z.core.$ZodRegistry<Partial<SettingFacts>> = z.registry<
  Partial<SettingFacts>
>();

/** The facts of a schema itself, or of the schema that its default or its null wraps. */
export function declaredFacts(schema: z.ZodType): Partial<SettingFacts> {
  const registered = setting.get(schema); // Unlike `has`, it sees what was registered before `describe`.
  const wraps = schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable;
  return wraps
    ? { ...declaredFacts(schema.unwrap() as z.ZodType), ...registered }
    : { ...registered };
}

/** The facts of the fields in a block with these facts. */
export function inside(
  { unit: _, ...block }: Partial<SettingFacts>,
  schema: z.ZodType,
): Partial<SettingFacts> {
  return { ...block, ...declaredFacts(schema) };
}
