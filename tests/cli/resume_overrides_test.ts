import {
  deepStrictEqual,
  doesNotMatch,
  match,
  rejects,
  strictEqual,
  throws,
} from "node:assert/strict";
import { quoted } from "../../cli/display/output.ts";
import { resumeOverrides } from "../../cli/resume_overrides.ts";
import { ConfigError } from "../../configs/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { forkRun, type Home } from "../../runs/mod.ts";
import {
  type Replan,
  replanned,
  requestedReplans,
  TrainerConfig,
  ValueModelConfig,
  valueTrainer,
} from "../../workers/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";

const headOf = async (home: Home, run: string) => (await home.store.head(run))!;
const resume = async (home: Home, ...texts: string[]) =>
  await resumeOverrides(home, await headOf(home, "a"), { overrides: texts });

Deno.test("resumeOverrides() takes numerics as replans, and settings that change no result", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const { replan, settings, graph, config } = await resume(
    home,
    "trainer.devices=[0, 2]",
    "workers.port=9001",
    "sampler.replicas=3",
    "checkpoints.keep_last=1",
    "checkpoints.every_rounds=1",
    "model.open_with_unexpected=true",
    "seed=3",
  );
  deepStrictEqual(replan, { "trainer.devices": [0, 2] });
  deepStrictEqual(settings, [
    { path: "checkpoints.every_rounds", read_by: "stages", from: 2, to: 1 },
    { path: "model.open_with_unexpected", read_by: "workers", from: false, to: true },
    { path: "sampler.replicas", read_by: "workers", from: 1, to: 3 },
    { path: "workers.port", read_by: "workers", from: 0, to: 9001 },
  ]);
  type Read = { sampler: { replicas: number }; checkpoints: { every_rounds: number } };
  const read = (
    of: unknown,
  ) => [(of as Read).sampler.replicas, (of as Read).checkpoints.every_rounds];
  deepStrictEqual(read(graph.config), [1, 1], "a round is cut as before");
  deepStrictEqual(read(config), [3, 1]);
});

Deno.test("resumeOverrides() says what is no override, no setting, or no value of one", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await rejects(resume(home, "trainer.ranks"), /PATH=VALUE/);
  await rejects(resume(home, "workers.prot=1"), (error) => {
    return error instanceof ConfigError && /workers\.prot.*port/s.test(error.message);
  });
  await rejects(
    resume(home, "workers.port=-1"),
    (error) => error instanceof ConfigError && /at least 0/.test(error.message),
  );
});

/** The fork that a message advises, with its arguments as a shell would split them. */
function advised(message: string): { round: number; overrides: string[] } {
  const [, round, rest] = /^ {2}next: deno task rl fork a --round (\d+) (.+) --home \S+$/m.exec(
    message,
  )!;
  const overrides = [...rest!.matchAll(/'([^']*)'|(\S+)/g)].map(([, inQuotes, plain]) =>
    inQuotes ?? plain!
  );
  return { round: Number(round), overrides };
}

/**
 * Settings that results follow from, and from which round a fork of a run with two closed rounds
 * has them.
 */
const FORKED: [string, number][] = [
  ["trainer.optimizer.lr=0.02", 2],
  ["samples_per_prompt=3", 2],
  ["algorithm={name: grpo, kl_coef: 0.1}", 2],
  ["rounds=3", 2],
  ["prompts_per_round=3", 0],
  ["trainer.threads=2", 0],
  ["data.on_long_prompt=drop", 0],
];

for (const [text, round] of FORKED) {
  Deno.test(`resume with ${text} is refused by name, and the fork that is advised runs to its end`, async () => {
    const home = await freshFakeHome();
    await createFakeRun(home, "a", { rounds: 2 });
    await executeFake(home, "a");
    const path = text.split("=")[0]!;
    const error = await resume(home, "workers.port=9001", text).then(
      () => null,
      (error: Error) => error,
    );
    strictEqual(error instanceof InvalidInputError, true);
    match(error!.message, new RegExp(`^Cannot resume run 'a' with a different ${path}`));
    doesNotMatch(error!.message, /with a different .*port.* because/);
    const fork = advised(error!.message);
    deepStrictEqual(fork, { round, overrides: ["workers.port=9001", text] });
    await forkRun(home, await headOf(home, "a"), { ...fork, id: "b" });
    strictEqual((await executeFake(home, "b")).status, "done");
  });
}

Deno.test("the fork that is advised accepts another release as the resume did", async () => {
  const home = await freshFakeHome();
  const head = { ...await createFakeRun(home, "a"), packages: "{}" };
  const options = { overrides: ["trainer.optimizer.lr=0.02"], accept: true };
  await rejects(resumeOverrides(home, head, options), /deno task rl fork a --round 0 --accept /);
});

Deno.test("resume with what no fork can have either says why, and to start a new run", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  const refused = async () =>
    (await resume(home, "seed=4").then(() => null, (error: Error) => error))!.message;
  match(
    await refused(),
    /different seed.*A fork cannot.*has fixed:\n {2}seed: everything random.*start a new run/s,
  );
  await executeFake(home, "a");
  match(
    await refused(),
    /different seed.*A fork cannot.*has fixed:\n {2}seed: everything random.*start a new run/s,
  );
});

Deno.test("quoted() is one argument of a shell", async () => {
  for (const text of ["a.b=c", "x=[1, 2]", "x={a: 'it''s'}", "$HOME", "`id`", "a;b", ""]) {
    const { stdout } = await new Deno.Command("sh", { args: ["-c", `printf %s ${quoted(text)}`] })
      .output();
    strictEqual(new TextDecoder().decode(stdout), text);
  }
});

Deno.test("requestedReplans() says what changes, from the last replan on, and nothing that is so already", () => {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2, zero: 1 });
  const earlier: Replan[] = [{ round: 3, cause: "asked", field: "trainer.ranks", from: 2, to: 4 }];
  deepStrictEqual(requestedReplans(trainer, earlier, { "trainer.ranks": 4 }), []);
  const rows = requestedReplans(trainer, earlier, {
    "trainer.ranks": 1,
    "trainer.micro_batch_tokens_max": 512,
  });
  deepStrictEqual(rows.map(({ field, from, to }) => `${field} ${from} ${to}`), [
    "trainer.ranks 4 1",
    "trainer.micro_batch_tokens_max 4096 512",
  ]);
  const { ranks, zero, micro_batch_tokens_max } = replanned(trainer, [...earlier, ...rows]);
  deepStrictEqual([ranks, zero, micro_batch_tokens_max], [1, 1, 512]);
});

Deno.test("requestedReplans() refuses what the trainer cannot be", () => {
  const torch = TrainerConfig.parse({});
  throws(
    () => requestedReplans(torch, [], { "trainer.ranks": 2 }),
    /trainer.engine is torch, which is one process/,
  );
  throws(
    () => requestedReplans(torch, [], { "trainer.micro_batch_tokens_max": 0 }),
    /micro_batch_tokens_max=0/,
  );
});

Deno.test("requestedReplans() of the value model's block: its own fields, from what it has now", () => {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2 });
  const values = ValueModelConfig.parse({ micro_batch_tokens_max: 512 });
  const requested = { "value_model.ranks": 1, "trainer.ranks": 4 };
  const rows = requestedReplans(valueTrainer(trainer, values), [], requested, "value_model");
  deepStrictEqual(rows.map(({ field, from, to }) => `${field} ${from} ${to}`), [
    "value_model.ranks 2 1",
  ]);
  deepStrictEqual(replanned(trainer, rows).ranks, 2);
  deepStrictEqual(valueTrainer(trainer, replanned(values, rows, "value_model")).ranks, 1);
});
