export const STORES = ["sqlite", "postgres"] as const;
export type StoreName = typeof STORES[number];

/** Where the runs of a campaign keep their journals. `url`: null for a file in each run's home. */
export type CampaignStore = { name: StoreName; url: string | null; close(): Promise<void> };

export function openCampaignStore(name: StoreName, _: { state: string }): Promise<CampaignStore> {
  if (name === "sqlite") return Promise.resolve({ name, url: null, close: async () => {} });
  throw new Error(`Cannot run kills on ${name}: the store is not there yet`);
}
