import { RE2JS } from "re2js";
import { z } from "zod";
import { setting } from "../data/mod.ts";
import {
  defineReward,
  graderSetting,
  type Reward,
  type RewardInput,
  type Score,
  type Unready,
} from "./define.ts";
import { captureGroups, rePattern, TEXT_CHARACTERS_MAX } from "./pattern.ts";
import {
  ask,
  httpUrl,
  limited,
  LIMITS,
  reached,
  readJson,
  type ServerClock,
  serverLimits,
  shown,
  unanswered,
} from "./server.ts";

/** `{name}` in a template; other braces, as those of JSON and of most TeX, stay as they are. */
const FIELD = /\{([A-Za-z_]\w*)\}/g;
const PATTERN = String.raw`\[\[([^\]]+)\]\]`;

const /** @internal */ config = z.strictObject({
  url: httpUrl.describe("The API's base, such as http://127.0.0.1:8000/v1.")
    .register(setting, graderSetting),
  model: z.string().min(1).describe("The model that judges, as the API names it.")
    .register(setting, graderSetting),
  key_env: z.string().regex(/^[A-Za-z_]\w*$/, "must be the name of a variable").optional().describe(
    "The environment variable that has the API's key. The key itself is not recorded.",
  ).register(setting, { ...graderSetting, resume: "stages" }),
  system: z.string().optional().describe("The system message; absent: none.")
    .register(setting, graderSetting),
  template: z.string().regex(/\{completion\}/, "must contain {completion}").describe(
    "The user message. {prompt}, {completion}, {answer} and each column's name in braces stand " +
      "for the sample's.",
  ).register(setting, graderSetting),
  pattern: rePattern.refine((text) => captureGroups(text) > 0, "must have a group, as in (\\d+)")
    .default(PATTERN).describe(
      "A regular expression of RE2 for the judge's reply. The first group of its last match is " +
        "the verdict.",
    ).register(setting, graderSetting),
  verdicts: z.record(z.string().min(1), z.number()).optional().describe(
    "The score of each verdict, in any case; absent: the verdict is a number.",
  ).register(setting, graderSetting),
  lowest: z.number().optional().describe(
    "With `highest`: numbers from `lowest` to `highest` become scores from 0 to 1. Absent: a " +
      "number is the score.",
  ).register(setting, graderSetting),
  highest: z.number().optional().describe("See `lowest`.").register(setting, graderSetting),
  temperature: z.number().min(0).default(0).describe("Sampling temperature of the judge.")
    .register(setting, graderSetting),
  tokens_max: z.int().positive().default(1024).describe("Limit of the judge's reply.")
    .register(setting, { ...graderSetting, unit: "tokens" }),
  request: z.record(z.string(), z.unknown()).default({}).describe(
    "Further fields of each request, such as { seed: 1 }; they take precedence, and null leaves " +
      "a field out.",
  ).register(setting, graderSetting),
  ...serverLimits,
}).refine(hasOneScale, "needs `verdicts`, or `lowest` below `highest`, or none of them");
/** @internal */
type Settings = z.output<typeof config>;
/** @internal */
type Reads = Pick<RewardInput, "prompt" | "completion" | "row" | "signal">;

/** Whether an entry says in one way what a verdict is worth. */
function hasOneScale(
  { verdicts, lowest, highest }: { verdicts?: object; lowest?: number; highest?: number },
): boolean {
  if (lowest === undefined || highest === undefined) return lowest === highest;
  return verdicts === undefined && lowest < highest;
}

/** What an API like OpenAI's answers. A model that thinks to its limit has a null content. */
const Completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullable() }) })).min(1),
});

/**
 * The score that a language model gives, asked through any API like OpenAI's (`POST
 * URL/chat/completions`). A reply without a verdict, or with one that has no score, fails the
 * sample: it is not a 0.
 *
 * Source: Zheng et al. 2023, https://arxiv.org/abs/2306.05685 (section 3.1, single answer grading;
 * the mark `[[8]]` is that of its prompts).
 * @throws {Error} If there is no verdict in time.
 */
export const judge: Reward<"judge", typeof config.shape, Reads> = defineReward({
  name: "judge",
  about: "The score that a language model gives.",
  runs_on: "engine",
  kept: { by: "settings", version: 1, apart_from: [...LIMITS, "key_env"], usually: true },
  right_at: null,
  config,
  check(row, { template }) {
    const names = [...template.matchAll(FIELD)].map((match) => match[1]!);
    const lacking = names.find((name) =>
      name !== "prompt" && name !== "completion" && (row[name] ?? null) === null
    );
    if (lacking === undefined) return;
    throw new RangeError(
      `Cannot score with judge because its template names {${lacking}}, which the row lacks`,
    );
  },
  unready: unableToJudge,
  score: (input: Reads, settings) => limited(settings, () => scoreByJudge(input, settings)),
});

export async function scoreByJudge(
  { signal, ...sample }: Reads,
  settings: Settings,
  clock?: ServerClock,
): Promise<Score> {
  const url = endpoint(settings, "chat/completions");
  const body = JSON.stringify(requestOf(sample, settings));
  const text = await ask(
    { url, body, headers: authorization(settings), timeout_ms: settings.timeout_ms, signal },
    clock,
  );
  const { choices } = readJson(text, { url, shape: Completion, what: "chat completion" });
  const score = scoreOf(choices[0]!.message.content ?? "", settings);
  if (typeof score === "string") throw unanswered(url, score);
  return score;
}

/** In one pass: braces that the model or the row wrote stay as they are. */
function requestOf(
  { prompt, completion, row }: Omit<Reads, "signal">,
  { model, system, template, temperature, tokens_max, request }: Settings,
): object {
  const values: Record<string, unknown> = { ...row, prompt, completion };
  const content = template.replaceAll(FIELD, (_, name: string) => {
    const value = values[name];
    return typeof value === "string" ? value : JSON.stringify(value) ?? "";
  });
  const messages = [
    ...(system === undefined ? [] : [{ role: "system", content: system }]),
    { role: "user", content },
  ];
  const fields = { model, messages, temperature, max_tokens: tokens_max, ...request };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** The score of a reply, or why it has none. */
function scoreOf(reply: string, { pattern, verdicts, lowest, highest }: Settings): number | string {
  const matcher = RE2JS.compile(pattern).matcher(reply.slice(-TEXT_CHARACTERS_MAX));
  let verdict: string | null = null;
  while (matcher.find()) verdict = matcher.group(1)?.trim() ?? null;
  if (verdict === null) return `the judge gave no verdict: ${shown(reply) || "no text"}`;
  if (verdicts !== undefined) {
    const wanted = verdict.toLowerCase();
    const found = Object.entries(verdicts).find(([name]) => name.toLowerCase() === wanted);
    return found?.[1] ?? `the judge's verdict '${shown(verdict)}' is none of ` +
        Object.keys(verdicts).join(", ");
  }
  const number = verdict === "" ? NaN : Number(verdict);
  if (!Number.isFinite(number)) return `the judge's verdict '${shown(verdict)}' is not a number`;
  if (lowest === undefined || highest === undefined) return number;
  if (number < lowest || number > highest) {
    return `the judge's verdict ${number} is not from ${lowest} to ${highest}`;
  }
  return (number - lowest) / (highest - lowest);
}

function endpoint({ url }: Pick<Settings, "url">, path: string): string {
  return `${url.replace(/\/+$/, "")}/${path}`;
}

function authorization({ key_env }: Pick<Settings, "key_env">): Record<string, string> {
  const key = key_env === undefined ? undefined : Deno.env.get(key_env);
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

const REFUSED = [401, 403];

/** Why a judge cannot be asked at all, and what to do; null: its API answers. */
export async function unableToJudge(
  settings: Pick<Settings, "url" | "key_env">,
): Promise<Unready | null> {
  const { key_env } = settings;
  if (key_env !== undefined && !Deno.env.get(key_env)) {
    return { why: `its key_env names ${key_env}, which is not set here`, fix: "set it" };
  }
  const found = await reached(endpoint(settings, "models"), { headers: authorization(settings) });
  if ("why" in found) {
    return {
      why: `the judge's API ${settings.url} cannot be reached: ${found.why}`,
      fix: "start it, or correct reward[].url",
    };
  }
  if (!REFUSED.includes(found.status)) return null;
  const fix = key_env === undefined ? "name the key's variable in key_env" : `correct ${key_env}`;
  return { why: `${settings.url} refuses the key (${found.status})`, fix };
}
