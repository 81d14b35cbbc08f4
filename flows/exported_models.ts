import type { GraphBuilder, Ref } from "../engine/mod.ts";
import type { Publication, TrainerConfig } from "../workers/mod.ts";
import type { Learner } from "./learner.ts";
import { exportAverage, exportCritic, exportPolicy } from "./stages/export_policy.ts";

/** @internal */
type Exported = {
  exported: Ref<Publication>;
  exported_ema?: Ref<Publication>;
  exported_critic?: Ref<Publication>;
};

/** Exports the last models as directories, and the moving average of the policy if there is one. */
export function exportedModels(
  g: GraphBuilder,
  { trainer }: { trainer: Pick<TrainerConfig, "ema_decay"> },
  { policy, critic }: Pick<Learner, "policy"> & Partial<Pick<Learner, "critic">>,
): Exported {
  const exported: Exported = { exported: g.stage(exportPolicy, { policy, name: "final" }) };
  if (trainer.ema_decay !== null) {
    exported.exported_ema = g.stage(exportAverage, { policy, name: "final_ema" });
  }
  if (critic !== undefined) {
    exported.exported_critic = g.stage(exportCritic, { policy: critic, name: "final_critic" });
  }
  return exported;
}
