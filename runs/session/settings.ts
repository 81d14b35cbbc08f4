/** Settings of a recorded run that a resume has changed: `note/settings` rows, and their effect. */
import { SHIPPED } from "../../flows/mod.ts";
import { z } from "zod";
import { SettingChange, withoutSettings, withSettings } from "../../configs/mod.ts";
import {
  canonicalJson,
  damagedField,
  type NewRow,
  recordedField,
  recordedValue,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";

/** Value of a `note/settings` row: what one resume has changed. */
const SettingsNote = z.strictObject({ changes: z.array(SettingChange).min(1) });

/**
 * What resumes have changed so far, oldest first. A fork has only its own changes: inherited ones
 * are in its configuration.
 */
export async function changedSettings(
  store: Store,
  { id }: Pick<RunHead, "id">,
): Promise<SettingChange[]> {
  const rows = await store.read(id, { kinds: ["note/settings"] });
  return rows.flatMap((row) => SettingsNote.parse(recordedValue(row)).changes);
}

/**
 * The configuration that a run was created with.
 * @throws {LostRecordError} If it is damaged.
 */
export function recordedConfig(
  head: Pick<RunHead, "id" | "entry" | "config">,
): Record<string, unknown> {
  const config = recordedField(head, "config") as Record<string, unknown> | null;
  // A script's graph may take anything.
  if (!head.entry.startsWith(SHIPPED) || typeof config?.flow === "string") return config!;
  throw damagedField(head, { field: "config", text: head.config });
}

/** A run's configuration with the settings that resumes have changed. */
export async function currentConfig(
  store: Store,
  head: Pick<RunHead, "id" | "entry" | "config">,
): Promise<Record<string, unknown>> {
  const recorded = recordedConfig(head);
  return withSettings(recorded, await changedSettings(store, head));
}

/** The row that records changes; none without changes. */
export function settingsRows(changes: readonly SettingChange[]): NewRow[] {
  if (changes.length === 0) return [];
  return [{ kind: "note/settings", key: "resume", value: canonicalJson({ changes }) }];
}

/**
 * The configuration that a run's graph is built from: without settings that only its worker
 * processes receive.
 */
export function graphConfig<Config>(config: Config, changes: readonly SettingChange[]): Config {
  return withSettings(config, changes.filter(({ read_by }) => read_by === "stages"));
}

/** The configurations that the graph had before each of these changes, the oldest first. */
export function earlierConfigs(config: unknown, changes: readonly SettingChange[]): unknown[] {
  const read = changes.filter(({ read_by }) => read_by === "stages");
  return read.map((_, i) => withoutSettings(config, read.slice(i)));
}
