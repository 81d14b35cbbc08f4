import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { decodeSlab, type Policy, Sampling, type Slab } from "../../data/mod.ts";
import { BadDataError } from "../../engine/mod.ts";
import { PolicySampler } from "../../rollouts/mod.ts";
import type { Caller, Loss, Published, Recovery } from "../../workers/mod.ts";
import { type FakeHook, FakeSampler, writeFakeModel } from "../../testing/mod.ts";

const dir = Deno.makeTempDirSync({ prefix: "policy_sampler_" });

async function published(version: string, weights: number): Promise<Published> {
  const out = `${dir}/${version}`;
  const { digest, file } = await writeFakeModel(out, weights);
  const policy: Policy = {
    version,
    record: { sha256: version, bytes: 1 },
    number: 1,
    model_path: out,
  };
  return { policy, publication: { version, dir: out, digest, tensors: [], files: [file] } };
}

const slab = (draw: number): Slab => ({
  id: `${draw}-${draw}`,
  draws: [{ draw, row: { row_id: `row-${draw}`, prompt: "p", columns: {} } }],
});

function caller(recoveries: unknown[] = []): Caller {
  const record = (_: string, __: string, value: unknown) =>
    Promise.resolve(void recoveries.push(value));
  return { key: "round/1/generate_slab/x", attempt: 1, record };
}

const work = (of: Published, draw = 0) => ({
  published: of,
  slab: slab(draw),
  samples_per_prompt: 2,
  sampling: Sampling.parse({}),
  seed: 1,
});

const ops = (sampler: FakeSampler) => sampler.calls.map(({ op }) => op).join(" ");

Deno.test("PolicySampler.load() loads every sampler and gives each proof", async () => {
  const operators = [new FakeSampler(), new FakeSampler()];
  const sampler = new PolicySampler({ operators });
  const proofs = await sampler.load(await published("v1", 1), caller());
  deepStrictEqual([sampler.count, operators.map(({ version }) => version)], [2, ["v1", "v1"]]);
  strictEqual(proofs[0]!.probe_sha256, proofs[1]!.probe_sha256);
});

Deno.test("PolicySampler.generate() sends a row's prompt and tools, no columns", async () => {
  const operator = new FakeSampler();
  const sampler = new PolicySampler({ operators: [operator] });
  const of = await published("with-tools", 0.5);
  const tools = '[{"type":"function"}]';
  const row = { row_id: "r", prompt: [{ role: "user", content: "q" }], tools };
  const slab: Slab = { id: "1-1", draws: [{ draw: 1, row: { ...row, columns: { tools } } }] };
  await sampler.generate({ ...work(of), slab: slab }, caller());
  const { args } = operator.calls.find(({ op }) => op === "generate")!;
  deepStrictEqual((args as { slab: Slab }).slab.draws[0]!.row, { ...row, columns: {} });
});

Deno.test("PolicySampler.generate() has a dropped publication written again", async () => {
  const v1 = await published("dropped", 1);
  await Deno.remove(v1.publication.dir, { recursive: true });
  const republished: string[] = [];
  const republish = async ({ policy }: Published) => {
    republished.push(policy.version);
    await published(policy.version, 1);
  };
  const operator = new FakeSampler();
  const sampler = new PolicySampler({ operators: [operator], republish });
  strictEqual((await sampler.generate(work(v1), caller())).version, "dropped");
  await sampler.generate(work(v1, 1), caller());
  deepStrictEqual(republished, ["dropped"]);
});

Deno.test("PolicySampler.generate() gives slabs to idle samplers in turn", async () => {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const started: string[] = [];
  const hold = (name: string): FakeHook => async ({ op, args }, moment) => {
    if (op !== "generate" || moment !== "begin") return;
    const { slab } = args as { slab: Slab };
    started.push(`${name}:${slab.id}`);
    const gate = Promise.withResolvers<void>();
    gates.set(slab.id, gate);
    await gate.promise;
  };
  const operators = ["a", "b"].map((name) => new FakeSampler({ hook: hold(name) }));
  const sampler = new PolicySampler({ operators });
  const v1 = await published("v1", 1);
  await sampler.load(v1, caller());
  const all = [0, 1, 2, 3].map((draw) => sampler.generate(work(v1, draw), caller()));
  await new Promise((resolve) => setTimeout(resolve, 0)); // A turn: they are handed out.
  deepStrictEqual(started, ["a:0-0", "b:1-1"]);
  gates.get("1-1")!.resolve();
  await all[1];
  // The oldest that waits, on the one that is free.
  deepStrictEqual(started, ["a:0-0", "b:1-1", "b:2-2"]);
  gates.get("0-0")!.resolve();
  await all[0];
  deepStrictEqual(started.at(-1), "a:3-3");
  for (const gate of gates.values()) gate.resolve();
  deepStrictEqual(
    (await Promise.all(all)).map(({ groups, samples }) => [groups, samples]),
    Array(4).fill([1, 2]),
  );
});

Deno.test("PolicySampler.generate() resumes a slab on the sampler that has it", async () => {
  const held = (draws: number[]) => (_op: string, args: unknown) =>
    Promise.resolve(draws.includes((args as { slab: Slab }).slab.draws[0]!.draw));
  const operators = [
    Object.assign(new FakeSampler(), { holds: held([]) }),
    Object.assign(new FakeSampler(), { holds: held([1, 2]) }),
  ];
  const sampler = new PolicySampler({ operators });
  const v1 = await published("v1", 1);
  await sampler.load(v1, caller());
  const fresh: number[] = [];
  const onNew = (draw: number) => () => Promise.resolve(void fresh.push(draw));
  await Promise.all(
    [0, 1, 2].map((draw) => sampler.generate(work(v1, draw), caller(), { onNew: onNew(draw) })),
  );
  deepStrictEqual(fresh, [0]);
  deepStrictEqual(operators.map(ops), ["load generate", "load generate generate"]);
});

Deno.test("PolicySampler.generate() does not depend on which sampler makes the slab", async () => {
  const v1 = await published("v1", 1);
  const generations = await Promise.all([1, 2].map(async (count) => {
    const sampler = new PolicySampler({
      operators: Array.from({ length: count }, () => new FakeSampler()),
    });
    await Promise.all([0, 1].map((draw) => sampler.generate(work(v1, draw), caller())));
    return decodeSlab((await sampler.generate(work(v1, 2), caller())).slab);
  }));
  deepStrictEqual(generations[0], generations[1]);
});

Deno.test("PolicySampler.generate() records a recovery of lost weights", async () => {
  const operator = new FakeSampler();
  const sampler = new PolicySampler({ operators: [operator] });
  const v1 = await published("v1", 1);
  await sampler.load(v1, caller());
  operator.forget();
  const recoveries: unknown[] = [];
  await sampler.generate(work(v1), caller(recoveries));
  strictEqual(ops(operator), "load generate load generate");
  const [{ cause, action, version }] = recoveries as [Record<string, unknown>];
  deepStrictEqual([cause, action, version, recoveries.length], [
    "worker_lost",
    "load_publication",
    "v1",
    1,
  ]);
});

Deno.test("PolicySampler names the root cause of a loss in its recovery", async () => {
  const losses: Loss[] = [];
  const operator = Object.assign(new FakeSampler(), { takeLoss: () => losses.shift() ?? null });
  const sampler = new PolicySampler({ operators: [operator] });
  const v1 = await published("v1", 1);
  const recoveries: unknown[] = [];
  losses.push({ cause: "out_of_memory", seconds: 4 });
  await sampler.load(v1, caller(recoveries)); // It died in the middle of the publication.
  operator.forget();
  losses.push({ cause: "no_progress", seconds: 5 });
  await sampler.generate(work(v1), caller(recoveries));
  const loaded = { action: "load_publication", version: "v1", batches_redone: 0 };
  deepStrictEqual(recoveries, [
    { cause: "out_of_memory", seconds: 4, ...loaded },
    { cause: "no_progress", seconds: 5, ...loaded },
  ]);
});

Deno.test("PolicySampler.generate() names after a restart how it came about", async () => {
  const sampler = new PolicySampler({ operators: [new FakeSampler()], restart: "resume" });
  const recoveries: Recovery[] = [];
  await sampler.generate(work(await published("v1", 1)), caller(recoveries));
  deepStrictEqual(recoveries.map(({ cause }) => cause), ["resume"]);
});

Deno.test("PolicySampler.generate() replaces an old version without a recovery", async () => {
  const operator = new FakeSampler();
  const sampler = new PolicySampler({ operators: [operator] });
  await sampler.load(await published("v1", 1), caller());
  const recoveries: unknown[] = [];
  const { version } = await sampler.generate(work(await published("v2", 2)), caller(recoveries));
  deepStrictEqual([version, operator.version, recoveries], ["v2", "v2", []]);
});

Deno.test("PolicySampler.generate() frees a sampler that fails", async () => {
  let broken = true;
  const hook: FakeHook = ({ op }) => {
    if (op === "generate" && broken) throw new Error("broken on purpose");
  };
  const sampler = new PolicySampler({ operators: [new FakeSampler({ hook })] });
  const v1 = await published("v1", 1);
  await sampler.load(v1, caller());
  await rejects(sampler.generate(work(v1), caller()), /broken on purpose/);
  broken = false;
  strictEqual((await sampler.generate(work(v1), caller())).groups, 1);
});

Deno.test("PolicySampler.generate() refuses a result without its data", async () => {
  const operator = new FakeSampler();
  const call = operator.call.bind(operator);
  operator.call = async (op, args, options) => ({ ...await call(op, args, options), blobs: [] });
  const sampler = new PolicySampler({ operators: [operator] });
  await rejects(sampler.generate(work(await published("v1", 1)), caller()), {
    code: "infrastructure",
  });
});

const DAMAGES: Record<string, (file: string) => Promise<void>> = {
  "other bytes": (file) => Deno.writeTextFile(file, "2"),
  "an empty file": (file) => Deno.truncate(file),
  "a missing file": (file) => Deno.remove(file),
  "a directory in a file's place": async (file) => {
    await Deno.remove(file);
    await Deno.mkdir(file);
  },
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  Deno.test(`PolicySampler.load() has a publication with ${name} written again once, for all samplers, and says so`, async () => {
    const v1 = await published("damaged", 1);
    await damage(`${v1.publication.dir}/${v1.publication.files[0]!.path}`);
    let written = 0;
    const republish = async () => {
      written += 1;
      await Deno.remove(v1.publication.dir, { recursive: true });
      await published("damaged", 1);
    };
    const operators = [new FakeSampler(), new FakeSampler()];
    const recoveries: Recovery[] = [];
    await new PolicySampler({ operators, republish }).load(v1, caller(recoveries));
    deepStrictEqual([written, ...operators.map(({ version }) => version)], [
      1,
      "damaged",
      "damaged",
    ]);
    strictEqual(ops(operators[0]!), "load load");
    ok(recoveries.length > 0);
    ok(
      recoveries.every(({ cause, action }) =>
        `${cause} ${action}` === "damaged_publication republish"
      ),
    );
  });
}

Deno.test("PolicySampler.load() loads again what was repaired for another one", async () => {
  const v1 = await published("late", 1);
  await Deno.writeTextFile(`${v1.publication.dir}/${v1.publication.files[0]!.path}`, "2");
  const republish = async () => void await published("late", 1);
  const again = Promise.withResolvers<void>();
  const early = new FakeSampler({
    hook: (_, moment) => moment === "done" ? again.resolve() : undefined,
  });
  const late = new FakeSampler();
  const call = late.call.bind(late);
  late.call = async (...args) => {
    try {
      return await call(...args);
    } catch (error) {
      await again.promise; // Its answer comes when the files are whole again.
      throw error;
    }
  };
  const sampler = new PolicySampler({ operators: [early, late], republish });
  await sampler.load(v1, caller());
  deepStrictEqual([early.version, late.version], ["late", "late"]);
});

Deno.test("PolicySampler.load() loads again what another stage rewrote", async () => {
  const v1 = await published("meanwhile", 1);
  let loads = 0;
  const late = new FakeSampler({
    hook: ({ op }, moment) => {
      if (op !== "load" || moment !== "begin" || ++loads > 1) return;
      // It is there by now.
      throw new BadDataError("Cannot open it because its file 'weights.json' is missing");
    },
  });
  const republish = () => Promise.reject(new Error("Nothing is damaged"));
  const recoveries: Recovery[] = [];
  await new PolicySampler({ operators: [late], republish }).load(v1, caller(recoveries));
  deepStrictEqual([late.version, loads, recoveries], ["meanwhile", 2, []]);
});

Deno.test("PolicySampler.load() fails if rewritten bytes differ", async () => {
  const v1 = await published("other", 1);
  await Deno.writeTextFile(`${v1.publication.dir}/${v1.publication.files[0]!.path}`, "2");
  const republish = async () => void await published("other", 3);
  await rejects(
    new PolicySampler({ operators: [new FakeSampler()], republish }).load(v1, caller()),
    /Cannot rewrite publication .* because the new files differ/,
  );
  const whole = await published("whole", 1);
  const broken = new FakeSampler({
    hook: () => {
      throw new BadDataError("Cannot load because the tensors are of another model");
    },
  });
  await rejects(
    new PolicySampler({ operators: [broken], republish }).load(whole, caller()),
    /of another model/,
  );
});

Deno.test("PolicySampler.generate() keeps its sampler until the slab is made", async () => {
  const [v1, v2] = [await published("v1", 1), await published("v2", 2)];
  const fake = new FakeSampler();
  let tail: Promise<unknown> = Promise.resolve();
  const oneByOne: FakeSampler["call"] = (...call) => { // As a group's operations are.
    const answer = tail.then(() => fake.call(...call));
    tail = answer;
    return answer;
  };
  const sampler = new PolicySampler({ operators: [{ call: oneByOne }] });
  const first = Promise.withResolvers<void>();
  const loading = first.promise.then(() => sampler.load(v2, caller()));
  fake.hook = ({ op }, moment) => {
    if (op === "load" && moment === "begin") first.resolve();
  };
  strictEqual((await sampler.generate(work(v1), caller())).version, "v1");
  await loading;
  deepStrictEqual([ops(fake), fake.version], ["generate load generate load", "v2"]);
});
