/**
 * A run whose model, reference and tokenizer come from a hub, with real workers: killed, and
 * resumed after the hub has a newer commit and cannot be reached. What cannot be had is said before
 * a run exists.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { FakeModelHub } from "../../testing/mod.ts";
import { PYTHON_ROOT } from "../../workers/processes/local_launcher.ts";
import { at, recorded, rl, show, withFreshHome } from "../crash/runs.ts";

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const MODEL = "owner/tiny";

/** The files of a small model that is created from a seed. */
async function modelFiles(home: string, seed: number): Promise<Record<string, Uint8Array>> {
  const dir = `${home}/made_${seed}`;
  const code = "import sys; from holdfast_worker.trainer.model.create_model import create_model; " +
    "create_model('tiny_qwen', seed=int(sys.argv[1]), directory=sys.argv[2], home=sys.argv[3])";
  const args = ["-c", code, String(seed), dir, home];
  const { code: exit, stderr } = await new Deno.Command(python, {
    args,
    env: { PYTHONPATH: PYTHON_ROOT },
  }).output();
  strictEqual(exit, 0, new TextDecoder().decode(stderr));
  const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await Deno.readFile(`${dir}/${name}`)])),
  );
}

/** A reward of at least 1 for a sample whose process has no token of the hub. */
const REWARD = "import os\n\ndef hidden(completion, row):\n" +
  "    return ('HF_TOKEN' not in os.environ) + len(set(completion)) / 10\n";

const CONFIG = `
flow: online
name: hub
rounds: 2
prompts_per_round: 2
samples_per_prompt: 2
model: { path: ${MODEL}, attn_implementation: eager }
reference: { path: ${MODEL}@main }
data: { train: rows.jsonl, eval: rows.jsonl }
reward: "reward.py:hidden"
algorithm: { name: grpo, kl_coef: 0.1 }
trainer: { device: cpu, python: ${python} }
sampler: { device: cpu, tokens_max: 4, python: ${python} }
evaluate: { problems: 2 }
workers: { grace_s: 0 }
`;

async function writeFiles(home: string): Promise<string> {
  const rows = Array.from({ length: 6 }, (_, n) => JSON.stringify({ prompt: `sort 5${n}432 =` }));
  await Deno.writeTextFile(`${home}/rows.jsonl`, `${rows.join("\n")}\n`);
  await Deno.writeTextFile(`${home}/reward.py`, REWARD);
  await Deno.writeTextFile(`${home}/hub.yaml`, CONFIG);
  return `${home}/hub.yaml`;
}

Deno.test("a run of a hub's model resumes offline with its commit, whatever the hub has", () =>
  withFreshHome(async (home) => {
    const hub = new FakeModelHub();
    const config = await writeFiles(home);
    const env = { HF_ENDPOINT: hub.url, HF_HOME: `${home}/hf`, HF_TOKEN: "secret" };
    const place = at({ home, store: null });
    const absent = await rl(["run", config, "--id", "none", ...place], env);
    strictEqual(absent.code, 2, absent.output);
    match(absent.output, /Cannot fetch model 'owner\/tiny' because the hub http:.* no such model/);
    deepStrictEqual(JSON.parse((await rl(["runs", "--json", ...place], env)).output), []);

    const commit = hub.put(MODEL, await modelFiles(home, 0));
    const killed = { ...env, HOLDFAST_FAULT: "kill:engine@frame:40" };
    const first = await rl(["run", config, "--id", "a", ...place], killed);
    strictEqual(first.signal, "SIGKILL", first.output);
    match(
      first.output,
      RegExp(`fetching model ${MODEL}@main@${commit}: 6 files, 1\\.\\d MiB, from `),
    );
    deepStrictEqual([...new Set(hub.asked.map(({ token }) => token))], ["secret"]);

    hub.put(MODEL, await modelFiles(home, 1));
    await hub[Symbol.asyncDispose]();
    const resumed = await rl(["resume", "a", ...place], env);
    strictEqual(resumed.code, 0, resumed.output);
    const shown = await show(home, "a");
    strictEqual(shown.status, "done");
    ok(shown.metrics["reward/mean"]! >= 1, "a reward saw the token");
    ok(Number(shown.ledger.trained) > 0, "nothing was trained");

    const { rows } = await recorded({ home, store: null }, "a");
    const notes = rows.filter(({ kind }) => kind === "note/model");
    deepStrictEqual(notes.map(({ key }) => key), [`${MODEL}@main@${commit}`]);
    const bases = rows.filter(({ kind, value }) =>
      kind === "note/version" && JSON.parse(value as string).number === 0
    ).map(({ value }) => JSON.parse(value as string));
    ok(bases.length > 0);
    for (const { model_path } of bases) strictEqual(model_path, `${MODEL}@main@${commit}`);
    const weights = `${home}/hf/hub/models--owner--tiny/snapshots/${commit}/model.safetensors`;
    ok(await Deno.stat(weights));
  }));
