/** Settings that a message tells people to change. */
import type { z } from "zod";
import { changeable, fieldPaths } from "../configs/mod.ts";
import { REPLAN_FIELDS } from "../workers/mod.ts";

/**
 * `value`: the advised value, if the message names one; `resume`: whether a resume may change it.
 */
type AdvisedSetting = { path: string; value: string | null; resume: boolean };

/** Words that precede an advised setting. */
const ADVICE = /\b(?:change|give|higher|lower|more|name|or|raise|set|smaller|use|with)$/i;
const SETTING = /(?<![\w./])([a-z_]+(?:\.[a-z_]+)+)(?:: (\w[\w.-]*\w|\w))?/g;

/** The settings of this schema that a message advises, each once. */
export function advisedSettings(schema: z.ZodType, text: string): AdvisedSetting[] {
  const known = new Set(fieldPaths(schema));
  const found = new Map<string, AdvisedSetting>();
  for (const { 1: path, 2: value, index } of text.matchAll(SETTING)) {
    if (!known.has(path!) || found.has(path!) || !ADVICE.test(text.slice(0, index).trimEnd())) {
      continue;
    }
    found.set(path!, { path: path!, value: value ?? null, resume: resumeTakes(schema, path!) });
  }
  return [...found.values()];
}

/** Whether `resume RUN path=...` is accepted. */
export function resumeTakes(schema: z.ZodType, path: string): boolean {
  return REPLAN_FIELDS.some((field) => field === path) ||
    changeable(schema).some((setting) => setting.path === path);
}
