/**
 * What a fork's prefix, or a checkpoint that a run starts from, has fixed, according to the
 * declarations of the settings.
 */
import type { z } from "zod";
import { AlgorithmChoice, type Refill, refillOf, unpairedOf } from "../../algs/mod.ts";
import { FLOWS, type Setting, settingsOf, valueAt } from "../../configs/mod.ts";
import { canonicalJson } from "../../engine/mod.ts";

type Fields = Record<string, unknown>;
/** A fork at a round of a loop, with the configurations of parent and child. */
export type Changing = {
  schema: z.ZodType;
  before: Fields;
  after: Fields;
  loop: string;
  round: number;
};
type Fixed = { path: string; why: string };
/** A setting with two values. `why`: if there is more to say than that they differ. */
export type Differing = { path: string; was: unknown; is: unknown; why?: string };

/** Every setting that the child would change although the prefix has fixed it. */
export function fixedByPrefix(changing: Changing): Fixed[] {
  const fixed = rulesOf(changing.schema).flatMap(({ path, facts, declared: { fork } }) =>
    typeof fork === "object" && differs(changing, { path, fork }) &&
      isFixed(changing, { fork, loop: facts.loop })
      ? [{ path, why: fork.why }]
      : []
  );
  const related = RELATED.filter(({ path, when }) => differs(changing, { path }) && when(changing));
  return [
    ...fixed,
    ...related.map(({ path, why }) => ({ path, why })),
    ...otherHeldOut(changing),
    ...fewerRounds(changing),
  ];
}

/**
 * Every setting that a run cannot change if it starts from a checkpoint of another one, because the
 * state or the place in the data depends on it. `before`: the other run's configuration, which
 * another release may have recorded: what it does not name has its default. Rows of files are not
 * among them, because their content decides.
 */
export function fixedByCheckpoint(changing: Changing): Differing[] {
  const { schema } = changing;
  const whole = { ...changing, before: withDefaults(schema, changing.before) };
  const rules = rulesOf(schema).filter(({ declared: { fork, rows }, facts: { loop } }) =>
    typeof fork === "object" && fork.start !== "free" && !rows &&
    isFixed(whole, { fork, loop })
  );
  const differing = rules.filter(({ path, declared }) =>
    differs(whole, { path, fork: declared.fork as ForkRule })
  );
  const related = RELATED.filter(({ path, when }) => differs(whole, { path }) && when(whole));
  return [
    ...differing.flatMap(({ path }) => differences(whole, path)),
    ...related.flatMap(({ path, why }) => differences(whole, path).map((one) => ({ ...one, why }))),
  ];
}

/** The settings at and below a path that differ. */
function differences(
  { before, after }: Pick<Changing, "before" | "after">,
  path: string,
): Differing[] {
  const [was, is] = [before, after].map((config) => valueAt(config, path.split(".")) ?? null);
  if (canonicalJson(was) === canonicalJson(is)) return [];
  const blocks = [was, is].every((one) => typeof one === "object" && one && !Array.isArray(one));
  if (!blocks) return [{ path, was, is }];
  const names = new Set([...Object.keys(was as Fields), ...Object.keys(is as Fields)]);
  return [...names].flatMap((name) => differences({ before, after }, `${path}.${name}`));
}

/** A record with the defaults of the settings that its blocks do not have. */
function withDefaults(schema: z.ZodType, recorded: Fields): Fields {
  const whole = structuredClone(recorded);
  for (const { path, schema: fieldSchema } of settingsOf(schema)) {
    const steps = path.split(".");
    const name = steps.pop()!;
    const block = valueAt(whole, steps);
    if (typeof block !== "object" || block === null || name in block) continue;
    const { data } = fieldSchema.safeParse(undefined);
    if (data !== undefined) (block as Fields)[name] = data;
  }
  return whole;
}

/** Whether the child reads rows that differ from its parent's. */
export function readsOtherRows(changing: Pick<Changing, "schema" | "before" | "after">): boolean {
  return rulesOf(changing.schema).some(({ path, declared }) =>
    declared.rows === true && differs(changing, { path })
  );
}

/**
 * The settings with declared facts. A custom graph may have settings of the shipped flows in a
 * custom schema: settings without facts there have the facts of the shipped flows.
 */
function rulesOf(schema: z.ZodType): Setting[] {
  const rules = settingsOf(schema).filter(({ declared }) =>
    declared.fork !== undefined || declared.rows !== undefined
  );
  const shipped = Object.values<z.ZodType>(FLOWS);
  if (shipped.includes(schema)) return rules;
  const known = new Map(rules.map((one) => [one.path, one]));
  for (const one of shipped.flatMap((flow) => settingsOf(flow))) {
    if (!known.has(one.path) && one.facts.fork !== undefined) known.set(one.path, one);
  }
  return [...known.values()];
}

type ForkRule = Exclude<Setting["declared"]["fork"], string | undefined>;

function isFixed(
  { before, loop, round }: Changing,
  { fork, loop: ruleLoop }: { fork: ForkRule; loop?: string },
): boolean {
  switch (fork.fixed) {
    case "start":
      return true;
    case "round_1":
      return round > 0 && (ruleLoop ?? loop) === loop;
    case "rows":
      return round > 0 || hasWarmup(before, loop);
    case "after_warmup":
      return loop === "round";
  }
}

/** The rounds of a warm-up are part of any prefix of the rounds after it. */
function hasWarmup(config: Fields, loop: string): boolean {
  return loop === "round" && "warmup" in config;
}

function differs(
  { before, after }: Pick<Changing, "before" | "after">,
  { path, fork }: { path: string; fork?: ForkRule },
): boolean {
  const [a, b] = [before, after].map((config) => valueAt(config, path.split(".")) ?? null);
  return fork?.on_or_off ? (a === 0) !== (b === 0) : canonicalJson(a) !== canonicalJson(b);
}

/** What several settings decide together. */
const RELATED: readonly (Fixed & { when: (changing: Changing) => boolean })[] = [
  {
    path: "evaluate.problems",
    why: "they were held out of the training rows",
    when: ({ before, loop, round }) => "task" in before && (round > 0 || hasWarmup(before, loop)),
  },
  {
    path: "algorithm",
    why: "its rounds drew until they were full, and only an algorithm that also does so can " +
      "continue their draws",
    when: (changing) =>
      inRound(changing) && refillIn(changing.before) !== null && refillIn(changing.after) === null,
  },
  {
    path: "reference.path",
    why: "its rounds pass on a reference that was or will be refreshed",
    when: (changing) => inRound(changing) && bothHave(changing, ["reference", "refresh_rounds"]),
  },
  {
    path: "algorithm.kl_coef",
    why: "its rounds carry the steered weight; set algorithm.kl_target: null to use a fixed weight",
    when: (changing) => inRound(changing) && bothHave(changing, ["algorithm", "kl_target"]),
  },
];

function inRound({ loop, round }: Changing): boolean {
  return loop === "round" && round > 0;
}

function bothHave({ before, after }: Changing, path: string[]): boolean {
  return [before, after].every((config) => typeof valueAt(config, path) === "number");
}

/** How rounds are filled, if they are. In a custom graph, `algorithm` may mean something else. */
function refillIn({ algorithm }: Fields): Refill | null {
  const { data } = AlgorithmChoice.safeParse(algorithm);
  return data === undefined ? null : refillOf(data);
}

/** A fork keeps the held-out rows; a run that starts from a checkpoint draws them itself. */
function otherHeldOut(changing: Changing): Fixed[] {
  if (!inRound(changing) || unpairedIn(changing.before) === unpairedIn(changing.after)) return [];
  const why = "held-out rows were drawn as it reads them: as pairs, or as completions with a label";
  return [{ path: "algorithm", why }];
}

/** What rows are drawn as, as text. */
function unpairedIn({ algorithm }: Fields): string {
  const { data } = AlgorithmChoice.safeParse(algorithm);
  return canonicalJson(data === undefined ? null : unpairedOf(data));
}

/** Whether rounds pass groups to the next round. */
function handsOn(config: Fields): boolean {
  const refill = refillIn(config);
  return refill !== null && refill.surplus !== "discard";
}

function fewerRounds({ schema, before, after, loop, round }: Changing): Fixed[] {
  const counts = rulesOf(schema).filter(({ facts }) =>
    facts.fork === "rounds" && (facts.loop ?? loop) === loop
  );
  // The setting in the loop's own block takes precedence over one that applies to any loop.
  const found = counts.toSorted((a, b) =>
    Number(b.facts.loop === loop) - Number(a.facts.loop === loop)
  )
    .find(({ path }) => typeof valueAt(after, path.split(".")) === "number");
  if (found === undefined) return [];
  const { path } = found;
  const [then, value] = [before, after].map((config) => valueAt(config, path.split(".")) as number);
  if (value! === then) return [];
  return [
    ...(value! < round
      ? [{ path, why: `is ${value}, but the prefix already has ${round} rounds` }]
      : []),
    ...(value === round && handsOn(before)
      ? [{ path, why: `is ${value}, but round ${round} may pass on groups` }]
      : []),
  ];
}
