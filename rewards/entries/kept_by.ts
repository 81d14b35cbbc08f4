import { createHash } from "node:crypto";
import { ownSettings } from "./entry_settings.ts";
import { REWARDS } from "../table.ts";

/**
 * By which hash the results of an entry are kept: that of the code, which the reward worker knows
 * (null), or of the settings of a server. Nothing, if equal samples may have different scores or if
 * a score costs less than finding it.
 */
export function keptBy(
  config: { name: keyof typeof REWARDS; deterministic?: boolean },
): { kept?: { code: string | null } } {
  const { name } = config;
  const { kept } = REWARDS[name];
  if (kept === null || !(config.deterministic ?? kept.usually)) return {};
  if (kept.by === "code") return { kept: { code: null } };
  const { version, apart_from } = kept;
  const settings = Object.entries(ownSettings(config)).filter(([key]) => !apart_from.includes(key));
  const text = JSON.stringify([version, name, settings.toSorted(([a], [b]) => a < b ? -1 : 1)]);
  return { kept: { code: createHash("sha256").update(text).digest("hex") } };
}
