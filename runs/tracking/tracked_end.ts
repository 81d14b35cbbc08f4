import { recordedConfig } from "../session/settings.ts";
import { hasEnded, type RunHead } from "../../engine/mod.ts";
import type { Home } from "../home/home.ts";
import { modelCard } from "./model_card.ts";
import { runView } from "../run_view.ts";
import type { TrackedEnd } from "./tracker.ts";

/** What trackers learn when an engine leaves a run: what is recorded. */
export async function trackedEnd(
  home: Home,
  { id }: Pick<RunHead, "id">,
): Promise<TrackedEnd> {
  const head = (await home.store.head(id))!;
  if (head.status === "failed") return { status: "failed", card: null };
  if (!hasEnded(head)) return { status: "interrupted", card: null };
  if (head.status !== "done") return { status: "cancelled", card: null };
  const view = await runView(home.store, head, await home.liveFacts(id));
  return {
    status: "done",
    card: modelCard(view, recordedConfig(head)),
  };
}
