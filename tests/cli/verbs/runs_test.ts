import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { endAll, exists, freshHome, json, rl, SMALL } from "../fixtures.ts";

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
const created = await rl(["run", SMALL, ...at, "--id", "small"]);
if (created.code !== 0) throw new Error(created.err);

Deno.test("show --json has every field of the contract", async () => {
  const view = await json(["show", "small", ...at]);
  const {
    id,
    status,
    graph,
    epoch,
    engine_pid,
    workers,
    round,
    policy,
    ledger,
    generated,
    recoveries,
    metrics,
  } = view;
  deepStrictEqual({ id, status, graph, epoch, engine_pid, workers, round, recoveries }, {
    id: "small",
    status: "done",
    graph: "quickstart",
    epoch: 1,
    engine_pid: null,
    workers: [],
    round: 6,
    recoveries: [],
  });
  match((policy as { version: string }).version, /^[0-9a-f]{64}$/);
  match((policy as { digest: string }).digest, /^[0-9a-f]{64}$/);
  deepStrictEqual(ledger, {
    read: 48,
    trained: 48,
    filtered: {},
    stale: 0,
    failed: {},
    pending: 0,
  });
  const { groups, samples, tokens } = generated as Record<string, number>;
  // Six rounds of 8 prompts x 4 samples, and two evaluations of 16 problems.
  deepStrictEqual([groups, samples], [6 * 8 + 2 * 16, 6 * 8 * 4 + 2 * 16]);
  ok(tokens! > samples!);
  strictEqual(typeof (metrics as Record<string, number>)["reward/mean"], "number");
});

Deno.test("a run's home is its owner's alone, but for its models: they are as readable as the umask says", async () => {
  const models: string[] = [];
  const open: string[] = [];
  const look = async (dir: string): Promise<void> => {
    const entries = await Array.fromAsync(Deno.readDir(dir));
    const isModel = entries.some(({ name }) => name === "model.safetensors");
    if (isModel) models.push(dir.slice(home.length));
    for (const { name, isFile, isDirectory } of entries) {
      if (isDirectory) await look(`${dir}/${name}`);
      if (!isFile) continue;
      const mode = (await Deno.stat(`${dir}/${name}`)).mode! & 0o777;
      if (mode !== (isModel ? 0o666 & ~Deno.umask() : 0o600)) {
        open.push(`${dir}/${name} ${mode.toString(8)}`);
      }
    }
  };
  await look(home);
  deepStrictEqual(open, []);
  ok(
    models.includes("/runs/small/final") &&
      models.some((dir) => /^\/checkpoints\/.*\/hf$/.test(dir)),
    models.join(),
  );
  for (const name of ["runs", "artifacts", "checkpoints", "logs"]) {
    strictEqual((await Deno.stat(`${home}/${name}`)).mode! & 0o777, 0o700, name);
  }
});

Deno.test("show: policy.digest is the sha256 over the exported tensors that anyone can compute again", async () => {
  const { policy } = await json<{ policy: { digest: string } }>(["show", "small", ...at]);
  strictEqual(await safetensorsDigest(`${home}/runs/small/final/model.safetensors`), policy.digest);
});

/**
 * name NUL dtype NUL shape NUL bytes, over the tensors sorted by name; the file's format is
 * safetensors.
 */
async function safetensorsDigest(path: string): Promise<string> {
  const bytes = await Deno.readFile(path);
  const header = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  type Entry = { dtype: string; shape: number[]; data_offsets: [number, number] };
  const { __metadata__: _, ...tensors } = JSON.parse(
    new TextDecoder().decode(bytes.subarray(8, 8 + header)),
  );
  const encoder = new TextEncoder();
  const parts = Object.keys(tensors).sort().flatMap((name) => {
    const { dtype, shape, data_offsets: [from, to] } = tensors[name] as Entry;
    const text = encoder.encode(`${name}\0${dtype}\0${JSON.stringify(shape)}\0`);
    return [text, bytes.subarray(8 + header + from, 8 + header + to)];
  });
  const digest = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

Deno.test("show and runs as text name what people look for, and the newest run needs no name", async () => {
  const { out } = await rl(["show", ...at]);
  match(out, /^run +small \(quickstart_small\)\nstatus +done\n/);
  match(out, /\nledger +read 48 = trained 48 \+ filtered 0 \+ stale 0 \+ failed 0 \+ pending 0\n/);
  const runs = (await rl(["runs", ...at])).out.split("\n");
  match(runs[0]!, /^run +name +status +graph +reward +age +last error$/);
  match(runs[1]!, /^small +quickstart_small +done +quickstart +0\.\d{3} +\d+ (s|min)$/);
  const listed = async (...filter: string[]) =>
    (await json<unknown[]>(["runs", ...at, ...filter])).length;
  deepStrictEqual([
    await listed("kstart_sm"),
    await listed("other"),
    await listed("--status", "failed"),
  ], [1, 0, 0]);
  const status = await rl(["runs", ...at, "--status", "fialed"]);
  deepStrictEqual([status.code, /did you mean failed/.test(status.err)], [2, true]);
});

Deno.test("a run id that is nearly one is suggested with exit 2, one that is not is not", async () => {
  const near = await rl(["show", "smal", ...at]);
  deepStrictEqual([near.code, near.out], [2, ""]);
  match(near.err, /Cannot find run 'smal' in .* \(did you mean small\?\)/);
  const far = await rl(["logs", "xyzzy", ...at]);
  strictEqual(far.code, 2);
  ok(!far.err.includes("did you mean"));
});

Deno.test("logs shows the last lines of each process's newest log, and where they lie", async () => {
  type Logs = { run: string; logs: { path: string; lines: string[] }[] };
  const { run, logs } = await json<Logs>(["logs", ...at, "--lines", "2"]);
  strictEqual(run, "small");
  const inDir = ({ path }: { path: string }) => path.slice(`${home}/logs/small/`.length);
  deepStrictEqual(logs.map(inDir), [
    "attempt_1/agent.1.log",
    "attempt_1/sampler_0.rank0.gen1.log",
    "attempt_1/trainer.rank0.gen1.log",
  ]);
  ok(logs.every(({ lines }) => lines.length <= 2));
  match((await rl(["logs", "small", ...at])).out, /==> .*agent\.1\.log <==\n/);
  const other = await rl(["logs", "small", ...at, "--attempt", "7"]);
  strictEqual(other.code, 2);
  match(other.err, /attempt 7 has no logs/);
  await Deno.mkdir(`${home}/logs/small/attempt_10`);
  await Deno.writeTextFile(`${home}/logs/small/attempt_10/sampler_0.rank0.gen1.log`, "again\n");
  const { logs: later } = await json<Logs>(["logs", ...at]);
  deepStrictEqual(later.map(inDir), [
    "attempt_1/agent.1.log",
    "attempt_10/sampler_0.rank0.gen1.log",
    "attempt_1/trainer.rank0.gen1.log",
  ], "workers that outlived their engine go on writing where they began");
  await Deno.remove(`${home}/logs/small/attempt_10`, { recursive: true });
});

Deno.test("rollouts shows a round's samples with rewards and parts, worst and best first", async () => {
  type Sample = {
    round: number;
    reward: number;
    parts: Record<string, number>;
    prompt: string;
    completion: string;
  };
  const best = await json<Sample[]>(["rollouts", ...at, "--round", "2", "--best", "3"]);
  const worst = await json<Sample[]>(["rollouts", ...at, "--round", "2", "--worst", "3"]);
  deepStrictEqual([best.length, worst.length, best[0]!.round], [3, 3, 2]);
  ok(
    best[0]!.reward >= best[2]!.reward && best[2]!.reward >= worst[2]!.reward &&
      worst[2]!.reward >= worst[0]!.reward,
  );
  deepStrictEqual(Object.keys(best[0]!.parts), ["characters_in_place", "exact_match"]);
  match(best[0]!.prompt, /^sort \d{5} =/);
  const text = await rl(["rollouts", ...at, "--limit", "1"]);
  match(
    text.out,
    /^round 6 draw 40 sample 0: reward [\d.]+ \(characters_in_place .*\n +prompt +"sort .*\n +completion +"/,
  );
  const none = await rl(["rollouts", ...at, "--round", "9"]);
  deepStrictEqual([none.code, none.out], [2, ""]);
});

Deno.test("checkpoints --verify exits 3 and names the file once one bit of it is flipped", async () => {
  type Kept = { dir: string; version: string; files: number; problem: string | null };
  const kept = await json<Kept[]>(["checkpoints", ...at, "--verify"]);
  strictEqual(kept.length, 2); // keep_last of the configuration.
  ok(kept.every(({ problem, files }) => problem === null && files > 3));
  const file = `${kept[1]!.dir}/hf/model.safetensors`;
  const bytes = await Deno.readFile(file);
  bytes[bytes.length - 1]! ^= 1;
  await Deno.writeFile(file, bytes);
  const flipped = await rl(["checkpoints", ...at, "--verify"]);
  strictEqual(flipped.code, 3);
  match(flipped.out, /hf\/model\.safetensors is not what was saved/);
  bytes[bytes.length - 1]! ^= 1;
  await Deno.writeFile(file, bytes);
  strictEqual((await rl(["checkpoints", ...at, "--verify"])).code, 0);
  await Deno.remove(`${kept[0]!.dir}/hf/config.json`);
  const missing = await rl(["checkpoints", ...at, "--verify"]);
  deepStrictEqual([missing.code, /hf\/config\.json is missing/.test(missing.out)], [3, true]);
  strictEqual((await rl(["checkpoints", ...at])).code, 0); // Nobody asked for a check.
});

Deno.test("an id that is taken is refused with exit 2 before anything starts", async () => {
  const again = await rl(["run", SMALL, ...at, "--id", "small"]);
  strictEqual(again.code, 2);
  match(again.err, /small/);
  ok(await exists(`${home}/runs/small/final/config.json`));
});
