/**
 * Which test files the gate runs, and which are long. A file is in the gate unless a long suite
 * names it.
 */

/** Whole runs, one for each promise of the first page. The gate runs them beside the fast tests. */
export const PROMISES = "tests/promises/";

/** A long suite: what it shows, and the beginnings of the paths of its files. */
type Suite = { about: string; files: readonly string[] };

/** `deno task test --whole NAME` runs one, `deno task test --whole` all of them in this order. */
export const SUITES: Readonly<Record<string, Suite>> = {
  additions: {
    about:
      "an algorithm, a setting and a verb join a copy of the repository, each by its own files",
    files: [
      "tests/cli/new_verb/new_verb_test.ts",
      "tests/configs/new_setting_test.ts",
      "tests/examples/my_algorithm_test.ts",
    ],
  },
  agents: {
    about: "agents and their ranks as processes: ends, signals, lost sockets, whole groups",
    files: [
      "tests/python/agent/test_agent.py",
      "tests/python/agent/test_agent_end.py",
      "tests/workers/line/real_agent_test.ts",
    ],
  },
  algorithms: {
    about: "every algorithm's value, metrics and gradient beside torch's, in over 1,000 settings",
    files: [
      "tests/algs/properties/properties_test.ts",
      "tests/algs/properties/python_file_test.ts",
      "tests/algs/properties/torch_settings_test.ts",
    ],
  },
  bench: {
    about: "the benchmarks run, and the memory that pages promise",
    files: ["tests/bench/"],
  },
  cli: {
    about: "the command line as processes: bad input, empty directories, the queue",
    files: [
      "tests/cli/bad_input_test.ts",
      "tests/cli/verbs/data/prepare_test.ts",
      "tests/cli/verbs/doctor_test.ts",
      "tests/cli/empty_directory_test.ts",
      "tests/cli/verbs/reward/test_test.ts",
      "tests/cli/verbs/runs_test.ts",
      "tests/cli/verbs/serve_test.ts",
    ],
  },
  crash: {
    about: "kills, freezes, cut networks, wrong clocks and full disks under real runs",
    files: [
      "tests/crash/",
      "tests/flows/crashes/crash_property_test.ts",
      "tests/runs/garbage/deletion_property_test.ts",
    ],
  },
  environments: {
    about: "Python environments made by the real uv and pip: damaged, cut short, without a network",
    files: [
      "tests/workers/environments/environments_test.ts",
      "tests/workers/environments/uv_test.ts",
    ],
  },
  gpu: {
    about: "a real model on a GPU; left out where there is none",
    files: ["tests/e2e/gpu_test.ts"],
  },
  learning: {
    about: "the quickstart learns with three seeds; a real model on GSM8K",
    files: [
      "tests/e2e/gsm8k_test.ts",
      "tests/e2e/quickstart_test.ts",
      "tests/examples/gsm8k_test.ts",
    ],
  },
  linters: {
    about: "pyright, strict, on all Python; the measures of `deno task tidy`",
    files: ["tests/linters/pyright_test.ts", "tests/tidy/measures_test.ts"],
  },
  models: {
    about: "models of the hub: fetched, cut off, killed, shared and run, with the real client",
    files: [
      "tests/e2e/hub_data_test.ts",
      "tests/e2e/hub_model_test.ts",
      "tests/workers/hub_data_test.ts",
      "tests/workers/model_hub_test.ts",
    ],
  },
  pages: {
    about: "every command and script of every page",
    files: ["tests/docs/pages_test.ts"],
  },
  peers: {
    about: "losses and gradients beside TRL's; data and rewards of six frameworks, as they are",
    files: [
      "tests/algs/peers/parity_test.ts",
      "tests/algs/peers/peers_test.ts",
      "tests/e2e/peer_setups_test.ts",
    ],
  },
  rewards: {
    about:
      "hostile reward functions and programs, their pool, reward models, math-verify's own pairs",
    files: [
      "tests/python/rewards/test_reward_model.py",
      "tests/python/rewards/test_rewards_confinement.py",
      "tests/python/rewards/graders/test_rewards_graders_code_battery.py",
      "tests/python/rewards/graders/test_rewards_graders_math_answer.py",
      "tests/python/rewards/test_rewards_pool.py",
    ],
  },
  runs: {
    about: "whole runs: packing, pairs, a value model, ZeRO, other ranks, forks, custom graphs",
    files: [
      "tests/cli/verbs/fork_test.ts",
      "tests/cli/verbs/run_test.ts",
      "tests/e2e/packing_test.ts",
      "tests/e2e/preference_test.ts",
      "tests/e2e/replan_test.ts",
      "tests/e2e/start_from_test.ts",
      "tests/e2e/value_model_test.ts",
      "tests/e2e/zero_group_test.ts",
      "tests/examples/custom_graph_test.ts",
      "tests/examples/reasoning_gym_test.ts",
    ],
  },
  settings: {
    about: "every setting reaches the workers that it is meant for, and forks refuse what is fixed",
    files: [
      "tests/flows/settings_reach_workers_test.ts",
      "tests/runs/forks/fixed_by_prefix_test.ts",
      "tests/runs/session/settings_test.ts",
    ],
  },
  simulation: {
    about: "2,000 simulated histories of crashes, freezes and takeovers",
    files: ["tests/simulation/"],
  },
  trackers: {
    about: "runs and trackers that are killed, each tracker read by its own client",
    files: [
      "tests/python/trackers/test_trackers_mlflow_sink.py",
      "tests/runs/tracking/trackers_test.ts",
    ],
  },
  trainers: {
    about: "trainers on torch and DeepSpeed: equal steps, bits across checkpoints, memory",
    files: [
      "tests/python/trainer/model/test_trainer_adapter.py",
      "tests/python/trainer/test_trainer_checkpoint.py",
      "tests/python/trainer/engines/test_trainer_deepspeed_",
      "tests/python/trainer/engines/test_trainer_engine_",
      "tests/python/trainer/model/test_trainer_heads.py",
      "tests/python/trainer/test_trainer_in_a_group.py",
      "tests/python/trainer/engines/test_trainer_optimizers.py",
      "tests/python/trainer/test_trainer_reductions.py",
    ],
  },
  vllm: {
    about: "vLLM's engine and adapters against Hugging Face's",
    files: ["tests/python/sampler/test_sampler_vllm_"],
  },
};

/** The long suite of a file; null if the gate runs it. */
export function suiteOf(path: string): string | null {
  const entry = Object.entries(SUITES).find(([, { files }]) =>
    files.some((start) => path.startsWith(start))
  );
  return entry?.[0] ?? null;
}

const ROOT = new URL("../../", import.meta.url).pathname;

/** Every test file of both languages, sorted; paths from the repository's root. */
export async function testFiles(dir = "tests"): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${ROOT}${dir}`)) {
    const path = `${dir}/${name}`;
    if (isDirectory) found.push(...await testFiles(path));
    else if (/_test\.ts$|^test_.*\.py$/.test(name)) found.push(path);
  }
  return found.sort();
}
