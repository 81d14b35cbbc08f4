export const STORES = ["sqlite", "postgres"] as const;
export type StoreName = typeof STORES[number];

/** Where the runs of a campaign keep their journals. `url`: null for a file in each run's home. */
export type CampaignStore = { name: StoreName; url: string | null; close(): Promise<void> };

/**
 * Opens a place for runs, which `close` removes. PostgreSQL is looked for only if it is asked for.
 */
export async function openCampaignStore(name: StoreName): Promise<CampaignStore> {
  if (name === "sqlite") return { name, url: null, close: () => Promise.resolve() };
  const { POSTGRES_MISSING, testSchema } = await import("../postgres.ts");
  if (POSTGRES_MISSING !== null) {
    throw new Error(`Cannot run kills on PostgreSQL: ${POSTGRES_MISSING}`);
  }
  const { url, dispose } = testSchema();
  return { name, url, close: dispose };
}
