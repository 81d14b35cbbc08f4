import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { hostname } from "node:os";
import { orphans } from "../../crash/runs.ts";
import { endAll, exists, freshHome, json, rl, SMALL, smallDisk, start } from "../fixtures.ts";

type Shown = {
  status: string;
  engine_pid: number | null;
  workers: { role: string; rank: number; pid: number; state: string }[];
  policy: { version: string; digest: string };
  recoveries: { cause: string; action: string; batches_redone: number }[];
  ledger: unknown;
  generated: { groups: number };
  round: number;
};

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
const calm = await rl(["run", SMALL, ...at, "--id", "calm"]);
const undisturbed = await json<Shown>(["show", "calm", ...at]);

Deno.test("run: an undisturbed run exits 0, prints one line per round under 200 characters, and no escape codes", () => {
  strictEqual(calm.code, 0, calm.err);
  strictEqual(calm.out, "");
  const rounds = calm.err.split("\n").filter((line) => line.startsWith("round "));
  deepStrictEqual(
    rounds.map((line) => line.split("  ")[0]),
    [1, 2, 3, 4, 5, 6].map((n) => `round ${n}/6`),
  );
  ok(calm.err.split("\n").every((line) => line.length < 200));
  ok(rounds.every((line) => /reward \d\.\d{3} .* \d+ tokens\/s/.test(line)), rounds.join("\n"));
  // deno-lint-ignore no-control-regex -- that there are none is the point
  ok(!/\x1b/.test(calm.err));
  strictEqual(undisturbed.round, 6);
});

/** Starts a run, waits until its second round has closed, and does something to it. */
async function disturbed(id: string, act: (running: ReturnType<typeof start>) => Promise<void>) {
  const running = start(["run", SMALL, ...at, "--id", id]);
  await running.says("round 2/6");
  await act(running);
  return await running.ended;
}

/** Presses Ctrl-C again: a second one counts only once the first cannot still be forwarded. */
async function pressedUntilEnd(running: ReturnType<typeof start>) {
  const press = setInterval(() => running.kill("SIGINT"), 100);
  return await running.ended.finally(() => clearInterval(press));
}

/** Settles once there is such a file. */
async function appears(path: string): Promise<void> {
  while (!await exists(path)) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function endsAsUndisturbed(id: string, of = home): Promise<void> {
  const resumed = await rl(["resume", id, "--home", of]);
  strictEqual(resumed.code, 0, resumed.err);
  const shown = await json<Shown>(["show", id, "--home", of]);
  deepStrictEqual([shown.status, shown.policy.digest, shown.ledger], [
    "done",
    undisturbed.policy.digest,
    undisturbed.ledger,
  ]);
}

Deno.test("Ctrl-C once stops at a durable point with exit 130 and the command to resume, which ends with the same weights", async () => {
  const ended = await disturbed("once", (running) => Promise.resolve(running.kill("SIGINT")));
  strictEqual(ended.code, 130, ended.err);
  match(
    ended.err,
    /stopping run once at the next durable point and saving its policy; Ctrl-C again stops immediately/,
  );
  match(
    ended.err,
    new RegExp(`interrupted\\. Resume with: deno task rl resume once --home ${home}`),
  );
  strictEqual(await orphans(home), 0);
  strictEqual((await json<Shown>(["show", "once", ...at])).status, "interrupted");
  await endsAsUndisturbed("once");
  // What was in flight was recorded, so nothing is made again; what was trained was saved, so
  // nothing is redone.
  const { generated, recoveries } = await json<Shown>(["show", "once", ...at]);
  strictEqual(generated.groups, undisturbed.generated.groups);
  const loads = recoveries.filter(({ action }) => action === "load_checkpoint");
  deepStrictEqual(loads.map(({ cause, batches_redone }) => [cause, batches_redone]), [[
    "resume",
    0,
  ]]);
});

Deno.test("publications torn while no engine ran are written again by the next one, which ends with the same weights", async () => {
  // It has loaded what round 1 left, and never delivers a slab of it.
  const frozen = "stop:sampler@op:9";
  const running = start(["run", SMALL, ...at, "--id", "torn", "workers.grace_s=0.5"], {
    HOLDFAST_FAULT: frozen,
  });
  await appears(`${home}/runs/torn/faults/${frozen}`);
  running.kill("SIGKILL");
  await running.ended;
  strictEqual(await orphans(home), 0);
  const publications = `${home}/runs/torn/publications`;
  for await (const { name } of Deno.readDir(publications)) {
    await Deno.truncate(`${publications}/${name}/model.safetensors`, 100);
  }
  await endsAsUndisturbed("torn");
  const { recoveries } = await json<Shown>(["show", "torn", ...at]);
  deepStrictEqual(recoveries.map(({ cause }) => cause).filter((cause) => /damaged/.test(cause)), [
    "damaged_publication",
  ]);
});

Deno.test("Ctrl-C twice stops at once with exit 130, leaves no process, and nothing recorded is lost", async () => {
  // It never delivers its slab, so the run cannot reach a durable point between the two.
  const frozen = "stop:sampler@op:9";
  const running = start(["run", SMALL, ...at, "--id", "twice"], { HOLDFAST_FAULT: frozen });
  await appears(`${home}/runs/twice/faults/${frozen}`);
  running.kill("SIGINT");
  await running.says("Ctrl-C again stops immediately");
  const ended = await pressedUntilEnd(running);
  deepStrictEqual([ended.code, ended.signal], [130, null], ended.err);
  match(ended.err, /stopped immediately\. Resume with: deno task rl resume twice[^\n]*\n$/);
  strictEqual(await orphans(home), 0);
  strictEqual((await json<Shown>(["show", "twice", ...at])).status, "interrupted");
  await endsAsUndisturbed("twice");
});

Deno.test("SIGTERM saves the newest policy, exits 130 within the grace, and the resumed run starts from what was saved", async () => {
  const ended = await disturbed("taken", (running) => Promise.resolve(running.kill("SIGTERM")));
  deepStrictEqual([ended.code, ended.signal], [130, null], ended.err);
  match(ended.err, /SIGTERM: stopping run .* and saving its policy; hard stop in 25 s/);
  strictEqual(await orphans(home), 0);
  const { policy } = await json<Shown>(["show", "taken", ...at]);
  const saved = await json<{ version: string; dir: string }[]>(["checkpoints", "taken", ...at]);
  strictEqual(saved.at(-1)?.version, policy.version);
  match(saved.at(-1)!.dir, /-now-/);
  await endsAsUndisturbed("taken");
  const { recoveries } = await json<Shown>(["show", "taken", ...at]);
  const loads = recoveries.filter(({ action }) => action === "load_checkpoint");
  deepStrictEqual(loads.map(({ cause, batches_redone }) => [cause, batches_redone]), [[
    "resume",
    0,
  ]]);
});

Deno.test("one of two samplers killed costs the slab in flight on it, and no bit", async () => {
  const fault = { HOLDFAST_FAULT: "kill:sampler@op:12" };
  const ended = await start(["run", SMALL, ...at, "--id", "pair", "sampler.replicas=2"], fault)
    .ended;
  strictEqual(ended.code, 0, ended.err);
  const { policy, ledger, generated } = await json<Shown>(["show", "pair", ...at]);
  deepStrictEqual([policy.digest, ledger], [undisturbed.policy.digest, undisturbed.ledger]);
  strictEqual(
    ended.err.match(/^sampler\/\d rank 0 died \(SIGKILL\): generation 2 starts$/gm)?.length,
    1,
    ended.err,
  );
  const again = generated.groups - undisturbed.generated.groups;
  ok(
    again === 0 || again === 4,
    `${again} groups more: at most the one slab of four that was in flight`,
  );
});

Deno.test("a full disk fails the run in words, and with space again it ends with the weights it would have had", async () => {
  const disk = await smallDisk(`${home}/disk`);
  const small = disk === null ? home : `${home}/disk`;
  try {
    const fault = disk === null ? { HOLDFAST_FAULT: "disk_full:engine@append:60" } : undefined;
    const running = start(["run", SMALL, "--home", small, "--id", "full"], fault);
    await running.says("round 2/6");
    await disk?.fill();
    const { code, err } = await running.ended;
    strictEqual(code, 3, err);
    match(err, /disk is full|No space left/);
    match(err, /Nothing recorded is lost.*resume full/);
    strictEqual(await orphans(small), 0);
    await disk?.free();
    await endsAsUndisturbed("full", small);
  } finally {
    await disk?.gone();
  }
});

Deno.test("show, resume and cancel of a run that another process executes: its pid and workers, exit 2, exit 3", async () => {
  const running = start(["run", SMALL, ...at, "--id", "busy", "online.rounds=500"]);
  await running.says("round 1/500");
  const shown = await json<Shown>(["show", "busy", ...at]);
  deepStrictEqual([shown.status, shown.engine_pid], ["running", running.pid]);
  deepStrictEqual(shown.workers.map(({ role, rank }) => [role, rank]), [["sampler", 0], [
    "trainer",
    0,
  ]]);
  // Which of the two is at work just now is chance.
  for (const { state } of shown.workers) ok(["ready", "busy"].includes(state), state);
  for (const { pid } of shown.workers) ok((await Deno.stat(`/proc/${pid}`)).isDirectory);
  const second = await rl(["resume", "busy", ...at]);
  strictEqual(second.code, 2);
  match(second.err, new RegExp(`engine process ${running.pid} owns it`));
  const cancel = await rl(["cancel", "busy", ...at]);
  deepStrictEqual([cancel.code, cancel.out], [
    0,
    `run busy was asked to cancel; its engine (process ${running.pid} on ${hostname()}) ends it\n`,
  ]);
  const ended = await running.ended;
  strictEqual(ended.code, 3, ended.err);
  match(ended.err, /run busy was cancelled/);
  strictEqual(await orphans(home), 0);
  strictEqual((await json<Shown>(["show", "busy", ...at])).status, "cancelled");
  const resumed = await rl(["resume", "busy", ...at]);
  strictEqual(resumed.code, 2);
  match(resumed.err, /'busy' .*cancelled/);
});

Deno.test("cancel of an interrupted run is at once; resume of a done one does nothing", async () => {
  await disturbed("dropped", (running) => Promise.resolve(running.kill("SIGKILL")));
  strictEqual((await json<Shown>(["show", "dropped", ...at])).status, "interrupted");
  strictEqual((await rl(["cancel", "dropped", ...at])).out, "run dropped is cancelled\n");
  strictEqual(await orphans(home), 0);
  const again = await rl(["resume", "calm", ...at]);
  deepStrictEqual([again.code, again.err], [0, "run calm is already done: nothing to resume\n"]);
  const runs = await json<{ id: string; status: string; resumable: boolean }[]>(["runs", ...at]);
  // Lies on the small disk, where one could be mounted.
  const here = runs.filter(({ id }) => id !== "full");
  deepStrictEqual(here.map(({ id, status, resumable }) => [id, status, resumable]), [
    ["dropped", "cancelled", false],
    ["busy", "cancelled", false],
    ["pair", "done", false],
    ["taken", "done", false],
    ["twice", "done", false],
    ["torn", "done", false],
    ["once", "done", false],
    ["calm", "done", false],
  ]);
});
