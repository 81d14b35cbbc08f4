import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, FencedError, graph, ReplayDriftError } from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { AT_ONCE, bench, NoConfig, runOnce, soleStage } from "./fixtures.ts";
import { chain, drifting, FIRST } from "./stages.ts";

Deno.test("resuming a failed run opens one new budget for what failed", async () => {
  const used = bench(AT_ONCE);
  let mended = false;
  const ran: string[] = [];
  const part = defineStage({
    name: "part",
    version: 1,
    input: z.string(),
    output: z.string(),
    run: (name) => {
      ran.push(name);
      if (name === "broken" && !mended) throw new TypeError("bug");
      return name;
    },
  });
  const { definition, built } = soleStage(async (
    _,
    ctx,
  ) => [await ctx.call(part, "good"), await ctx.call(part, "broken")]);
  strictEqual((await runOnce(used, definition)).status, "failed");
  deepStrictEqual(ran, ["good", "broken"]);
  strictEqual((await used.engine.execute("run", built)).status, "failed");
  deepStrictEqual(ran, ["good", "broken", "broken"]);
  mended = true;
  deepStrictEqual(await used.engine.execute("run", built), {
    status: "done",
    output: ["good", "broken"],
  });
  deepStrictEqual(ran, ["good", "broken", "broken", "broken"]);
});

Deno.test("an engine that was superseded aborts, writes nothing more and says so", async () => {
  const used = bench();
  await used.engine.create(chain, {}, { id: "run" });
  const running = used.engine.execute("run", chain.build({}));
  const task = await used.trainer.task("slow");
  const second = bench({ store: used.store.restarted(), clock: used.clock });
  const taken = second.engine.execute("run", chain.build({}));
  (await second.trainer.task("slow")).finish("new");
  deepStrictEqual(await taken, { status: "done", output: "new!" });
  task.finish("old");
  deepStrictEqual(await running, { status: "fenced" });
  const results = used.store.rows("run").filter((row) =>
    row.kind === "result" && row.key === "slow"
  );
  deepStrictEqual(results.map((row) => row.epoch), [2]);
});

Deno.test("owned() is awaited before the first stage, under the engine's epoch", async () => {
  const used = bench();
  const { definition, built } = soleStage(() => "done");
  await used.engine.create(definition, {}, { id: "run" });
  const before: unknown[] = [];
  const owned = async (epoch: number) => {
    await used.store.append("run", epoch, [{ kind: "note/x", key: "first", value: "1" }]);
    before.push(epoch, used.store.rows("run").map(({ key }) => key));
  };
  deepStrictEqual(await used.engine.execute("run", built, { owned }), {
    status: "done",
    output: "done",
  });
  deepStrictEqual(before, [1, ["first"]]);
});

Deno.test("what owned() throws ends the execution, and the run can be resumed", async () => {
  const used = bench();
  const { definition, built } = soleStage(() => "done");
  await used.engine.create(definition, {}, { id: "run" });
  const broken = new Error("broken");
  const owners: unknown[] = [];
  const owned = () => Promise.reject(broken);
  const letGo = async () => void owners.push((await used.store.head("run"))!.owner?.boot_id);
  await rejects(used.engine.execute("run", built, { owned, letGo }), broken);
  deepStrictEqual(used.store.rows("run"), []);
  strictEqual(owners.length, 1);
  ok(owners[0], "the run was released before letGo()");
  strictEqual((await used.store.head("run"))!.owner, null);
  strictEqual((await used.engine.execute("run", built)).status, "done");
});

Deno.test("a run that another engine takes during owned() is fenced", async () => {
  const used = bench();
  const { definition, built } = soleStage(() => "done");
  await used.engine.create(definition, {}, { id: "run" });
  const other = { boot_id: "other", host: "h", pid: 1, process_start: "s" };
  const owned = async () => {
    await used.store.claim("run", other, { lease_ms: 1000, force: true });
    throw new FencedError("Cannot record", {});
  };
  strictEqual((await used.engine.execute("run", built, { owned })).status, "fenced");
  strictEqual((await used.store.head("run"))!.owner?.boot_id, "other");
});

Deno.test("a run that its owner ends before this engine takes it answers how", async () => {
  const { definition, built } = soleStage(() => "done");
  const used = bench();
  await used.engine.create(definition, {}, { id: "run" });
  class Late extends MemoryStore {
    override async claim(
      ...claim: Parameters<MemoryStore["claim"]>
    ): ReturnType<MemoryStore["claim"]> {
      await bench({ store: used.store }).engine.execute("run", built);
      return await used.store.claim(...claim);
    }
    override head = (run: string) => used.store.head(run);
    override read = (...query: Parameters<MemoryStore["read"]>) => used.store.read(...query);
  }
  deepStrictEqual(await bench({ store: new Late() }).engine.execute("run", built), {
    status: "done",
    output: "done",
  });
});

Deno.test("a different graph is refused before the claim, with the difference", async () => {
  const one = drifting(FIRST);
  const other = graph("drift", NoConfig, (g) => g.constant(1));
  const used = bench();
  await used.engine.create(one, {}, { id: "run" });
  await rejects(used.engine.execute("run", other.build({})), (error: Error) => {
    ok(error instanceof ReplayDriftError);
    match(error.message, /- work stage work@1 <-\n.*\+ output <- constant/s);
    return true;
  });
  strictEqual((await used.store.head("run"))?.epoch, 0);
});
