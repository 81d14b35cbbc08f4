import { parse as parseYaml, YAMLParseError } from "yaml";
import { z } from "zod";
import { InvalidInputError } from "../engine/mod.ts";
import { RewardConfig, REWARDS } from "../rewards/mod.ts";
import { absolute, namedFiles } from "./files.ts";
import { REWARD_RULES } from "./rules/reward_rules.ts";
import type { Blocks } from "./rules/rule_blocks.ts";
import { writeOut } from "./short_forms.ts";
import { didYouMean } from "./problems/suggest.ts";

const NAMES = Object.keys(REWARDS);

/**
 * Rewards as `reward:` of a configuration takes them, written on a command line: a name,
 * `path.py:function`, an entry in braces, or a list. Paths start at `dir`.
 * @throws {InvalidInputError} If it is not one of these.
 */
export function parseRewards(text: string, dir: string): RewardConfig[] {
  const { value } = writeOut({ reward: yamlOf(text) });
  for (const named of namedFiles(value)) {
    const [, index, field] = named.path as [string, number, string];
    const { reward } = value as { reward: Record<string, unknown>[] };
    reward[index]![field] = absolute(named, dir);
  }
  const { reward } = value as { reward: { name?: unknown }[] };
  for (const { name } of reward) {
    if (typeof name !== "string" || NAMES.includes(name)) continue;
    const names = `${NAMES.join(", ")} or path.py:function`;
    throw refused(text, `there is no reward '${name}'${didYouMean(name, NAMES)}`, names);
  }
  const parsed = z.array(RewardConfig).min(1).safeParse(reward);
  if (!parsed.success) {
    const { path: [at = 0, ...path], message } = parsed.error.issues[0]!;
    const where = [`entry ${Number(at) + 1}`, ...path].join(".");
    throw refused(text, `${where}: ${message}`, "give entries as in a configuration");
  }
  const rules = REWARD_RULES.flatMap((rule) => rule({ reward: parsed.data } as Blocks))
    .filter(({ path }) => path.at(-1) !== "source"); // The rows are known later.
  if (rules.length > 0) {
    throw refused(text, `${rules[0]!.path.join(".")}: ${rules[0]!.message}`, "correct it");
  }
  return parsed.data;
}

function yamlOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    const [line] = error.message.split("\n");
    throw refused(text, `it is not YAML: ${line}`, "give '{ name: ... }'");
  }
}

function refused(text: string, why: string, fix: string): InvalidInputError {
  return new InvalidInputError(`Cannot use reward '${text}' because ${why}. Fix: ${fix}`, {
    reward: text,
  });
}
