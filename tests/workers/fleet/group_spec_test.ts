import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { groupSpec } from "../../../workers/mod.ts";

const common = { name: "toy", module: "toy" };

Deno.test("groupSpec() hides GPUs from a CPU group, and nothing from one that needs none", () => {
  const group = {
    group: "toy",
    ranks: 1,
    spec: {},
    environment: "torch_cpu" as const,
    python: null,
    gpus: null,
  };
  const started = {
    group: "toy",
    role: "toy",
    module: "toy",
    ranks: 1,
    spec: {},
    python: "py",
  };
  deepStrictEqual(groupSpec(common, group, { python: "py" }), started);
  const each = { reason: "", why: "", fix: "" };
  const gpus = { block: "toy", device: "cpu" as const, count: 1, each };
  const { env } = groupSpec(common, { ...group, env: { A: "1" }, gpus }, { python: "py" });
  deepStrictEqual(env, { A: "1", CUDA_VISIBLE_DEVICES: "" });
  strictEqual(groupSpec(common, group, { python: "py", no_progress_ms: 7 }).no_progress_ms, 7);
});
