import { createHash } from "node:crypto";
import { ownSettings } from "./entry_settings.ts";

/** Raise it when `judge` or `remote` read the same answer differently. */
const VERSION = 1;
/** Settings on which no score depends. */
const LIMITS = ["timeout_ms", "requests_max", "key_env"];

/**
 * By which hash the results of an entry are kept: that of the code, which the reward worker knows
 * (null), or of the settings of a server. Nothing, if equal samples may have different scores or if
 * a score costs less than finding it.
 */
export function keptBy(
  config: { name: string; deterministic?: boolean },
): { kept?: { code: string | null } } {
  const { name, deterministic = name !== "remote" } = config;
  if (!deterministic) return {};
  if (name === "python" || name === "math") return { kept: { code: null } };
  if (name !== "judge" && name !== "remote") return {};
  const settings = Object.entries(ownSettings(config)).filter(([key]) => !LIMITS.includes(key));
  const text = JSON.stringify([VERSION, name, settings.toSorted(([a], [b]) => a < b ? -1 : 1)]);
  return { kept: { code: createHash("sha256").update(text).digest("hex") } };
}
