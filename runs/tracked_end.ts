import type { Outcome, RunHead } from "../engine/mod.ts";
import type { Home } from "./home.ts";
import { modelCard } from "./model_card.ts";
import { runView } from "./run_view.ts";
import type { TrackedEnd } from "./tracker.ts";

/** What trackers learn at the end. `outcome`: null if the engine itself failed. */
export async function trackedEnd(
  home: Home,
  { id, config }: Pick<RunHead, "id" | "config">,
  outcome: Outcome | null,
): Promise<TrackedEnd> {
  if (outcome === null || outcome.status === "fenced") return { status: "interrupted", card: null };
  if (outcome.status !== "done") return { status: outcome.status, card: null };
  const view = await runView(home.store, (await home.store.head(id))!, await home.liveFacts(id));
  return { status: "done", card: modelCard(view, JSON.parse(config)) };
}
