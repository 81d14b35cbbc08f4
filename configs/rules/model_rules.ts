import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules about which model is opened, and how. */
export const MODEL_RULES = [packedRowsAreSdpas, flashIsForHalves, startsAtRounds];

const PATH = ["model", "attn_implementation"];

function packedRowsAreSdpas({ model, trainer }: Blocks): Issue[] {
  const kernels = model?.attn_implementation ?? "sdpa";
  if (!trainer?.packing || kernels === "sdpa") return [];
  return [{
    path: PATH,
    message: `is ${kernels}; packed rows are computed by sdpa: leave it out, or set ` +
      "trainer.packing: false",
  }];
}

/** They exist for 16 bits on a GPU only. */
function flashIsForHalves({ model, trainer, sampler }: Blocks): Issue[] {
  const kernels = model?.attn_implementation;
  if (!kernels?.startsWith("flash")) return [];
  const opened = { trainer, sampler: sampler?.engine === "huggingface" ? sampler : undefined };
  return Object.entries(opened).flatMap(([block, processes]) => {
    if (processes === undefined) return [];
    const { dtype, device } = processes;
    const fixes = [
      ...(dtype === "float32" ? [`${block}.dtype: bfloat16`] : []),
      ...(device === "cpu" ? [`${block}.device: cuda`] : []),
    ];
    if (fixes.length === 0) return [];
    const needs = `is ${kernels}, which computes 16 bits on a GPU: set ${fixes.join(" and ")}`;
    return [{ path: PATH, message: needs }];
  });
}

/** What other runs do before their first round is not done again. */
function startsAtRounds({ start_from, model, warmup }: Blocks): Issue[] {
  if (start_from === undefined) return [];
  const message = (what: string) =>
    `with start_from, the run would ${what} again: give the directory that the other run left as ` +
    "model.path";
  const issues: Issue[] = [];
  if (model?.recipe) {
    issues.push({ path: ["model", "recipe"], message: message("create its model") });
  }
  if (warmup) issues.push({ path: ["warmup"], message: `${message("warm up")}, and use null` });
  return issues;
}
