import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { setImmediate } from "node:timers";
import { isBadInput } from "../../../cli/exit.ts";
import { sendSignal } from "../../../cli/verbs/signal.ts";
import {
  Engine,
  type EngineError,
  type GraphDefinition,
  ManualClock,
} from "../../../engine/mod.ts";
import { Home } from "../../../runs/mod.ts";
import { soleStage } from "../../engine/fixtures.ts";
import { createFakeRun, freshFakeHome } from "../../runs/fake_home.ts";
import { endAll, freshHome, rl } from "../fixtures.ts";

Deno.test.afterAll(endAll);

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

Deno.test("signal's value is YAML; without one, or with nothing in it, it is null", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "run");
  const values: [string | undefined, string][] = [
    [undefined, "null"],
    ["", "null"],
    ["~", "null"],
    ["true", "true"],
    ["yes", '"yes"'],
    ["'true'", '"true"'],
    ["0x1f", "31"],
    ["go on", '"go on"'],
    ["{by: ada, at: [1, 2.5]}", '{"by":"ada","at":[1,2.5]}'],
    ["2026-01-01", '"2026-01-01"'],
    ["- a\n- b", '["a","b"]'],
  ];
  for (const [place, [text, recorded]] of values.entries()) {
    const name = `signal_${place}`;
    strictEqual(
      await sendSignal(home, "run", { name, text }),
      `sent signal '${name}' to run run: ${recorded}`,
    );
    const rows = await home.store.read("run", { kinds: ["signal"], prefix: name });
    deepStrictEqual(rows.filter(({ key }) => key === name).map(({ value }) => JSON.parse(value)), [
      JSON.parse(recorded),
    ]);
  }
});

Deno.test("signal refuses a value that is no YAML, or that no journal can hold, and records nothing", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "run");
  const notYaml = ["{", "[1", "a: b: c", "'open", "@x", "{a: 1, a: 2}", "a\n---\nb", "*gone"];
  const notJson = [".nan", "-.inf", "1e400", "!!binary aGk=", "!!set {a}", "&a [*a]", "!mine y"];
  for (const text of [...notYaml, ...notJson]) {
    await rejects(sendSignal(home, "run", { name: "go", text }), (error: EngineError) => {
      match(
        error.message,
        /^Cannot read '[^]*' as a signal's value because .*\. Fix: quote it, as in '"text"'$/,
        text,
      );
      return isBadInput(error);
    });
  }
  deepStrictEqual(await home.store.read("run", { kinds: ["signal"] }), []);
});

Deno.test("signal reaches a run that another process executes, through the store, and its end is its answer", async () => {
  const dir = await freshHome();
  const home = Home.open(dir);
  try {
    const clock = new ManualClock();
    const { store, artifacts } = home;
    const engine = new Engine({ store, artifacts, clock, resources: [] });
    const { definition, built } = soleStage((_, ctx) => ctx.signalled("approve"));
    await engine.create(definition as GraphDefinition, {}, { id: "run" });
    const ended = engine.execute("run", built);
    const waits = async () => (await store.read("run", { kinds: ["intent"] })).length > 0;
    while (!await waits()) await nextTurn();
    const signal = (...words: string[]) => rl(["signal", ...words, "--home", dir]);
    const sent = await signal("run", "approve", "{by: ada, shares: -1}");
    deepStrictEqual([sent.code, sent.err], [0, ""]);
    strictEqual(sent.out, `sent signal 'approve' to run run: {"by":"ada","shares":-1}\n`);
    await clock.advance(60_000);
    deepStrictEqual(await ended, { status: "done", output: { by: "ada", shares: -1 } });
    const late = await signal("run", "late");
    match(late.err, /Cannot signal 'late' to run 'run' because it has ended: it is done/);
    const bad = await signal("nobody", "go", "-1");
    match(bad.err, /Cannot find run 'nobody'/);
    deepStrictEqual([late.code, bad.code], [2, 2]);
  } finally {
    await home.close();
  }
});
