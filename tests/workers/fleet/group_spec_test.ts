import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { groupLimits, groupSpec, ROLES, WorkersConfig } from "../../../workers/mod.ts";
import { TIMED } from "../../../workers/workers_config.ts";

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

/** The operations of each role that such a limit of 2 s applies to. */
function limitedBy(setting: string) {
  const workers = WorkersConfig.parse({ [setting]: 2 });
  return Object.fromEntries(
    ROLES.map((role) => [role.name, groupLimits(role, workers).timeouts])
      .filter(([, timeouts]) => Object.keys(timeouts!).length > 0),
  );
}

Deno.test("groupLimits() gives each operation the time limit of its phase", () => {
  const of = (setting: string) => ({ limit_ms: 2000, setting: `workers.${setting}` });
  const limited = Object.fromEntries(
    TIMED.map((timed) => [timed, limitedBy(`${timed}_timeout_s`)]),
  );
  const [load, generate, score, train, save, publish] = TIMED.map((timed) =>
    of(`${timed}_timeout_s`)
  );
  deepStrictEqual(limited, {
    load: { trainer: { load } },
    generate: { sampler: { generate } },
    score: {
      trainer: { score, evaluate: score },
      reward: { score, score_by_model: score },
    },
    train: { trainer: { train } },
    save: { trainer: { save } },
    publish: { trainer: { publish }, sampler: { load: publish } },
  });
});

Deno.test("groupLimits() has no time limits by default, and those for starts and silence", () => {
  const workers = WorkersConfig.parse({});
  for (const role of ROLES) {
    deepStrictEqual(groupLimits(role, workers), {
      start_timeout_ms: 300_000,
      no_progress_ms: 600_000,
      timeouts: {},
    });
  }
});
