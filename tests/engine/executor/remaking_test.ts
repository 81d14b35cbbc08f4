import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { ArtifactStore, defineStage, Engine, graph } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";

/**
 * A stage that leaves a file, and a loop whose open rounds read it without waiting for the stage:
 * they carry what it gave.
 */
function world() {
  const files = new Set<string>();
  const order: string[] = [];
  let failing = true;
  const madeStage = (name: string) =>
    defineStage({
      name,
      version: 1,
      input: z.strictObject({ from: z.string() }),
      output: z.string(),
      leaves: { areThere: (path) => Promise.resolve(files.has(path)), identity: (path) => path },
      async run() {
        // Others would come first if they could.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
        order.push(name);
        files.add(name);
        return name;
      },
    });
  const use = defineStage({
    name: "use",
    version: 1,
    input: z.strictObject({ path: z.string(), round: z.int() }),
    output: z.string(),
    run({ path, round }) {
      if (round === 3 && failing) throw new Error("on purpose");
      ok(files.has("first") && files.has("second"), "the files are there");
      order.push(`use ${round}`);
      return path;
    },
  });
  const definition = graph("remaking", z.strictObject({}), (g) => {
    const first = g.stage(madeStage("first"), { from: "" });
    const second = g.stage(madeStage("second"), { from: first });
    const { path } = g.loop("round", { times: 4, carry: { path: second } }, (r) => ({
      path: r.stage(use, { path: r.carried("path"), round: r.index }),
    }));
    return path;
  });
  return { files, order, definition, mend: () => failing = false };
}

Deno.test("missing files are made again in the graph's order, before all else", async () => {
  const dir = await Deno.makeTempDir({ prefix: "remaking_" });
  try {
    for (const lost of [["first"], ["second"], ["first", "second"], []]) {
      const { files, order, definition, mend } = world();
      const store = new MemoryStore();
      const built = definition.build({});
      const start = async (shared: MemoryStore) =>
        await new Engine({ store: shared, artifacts: new ArtifactStore(dir) }).execute(
          "run",
          built,
        );
      await new Engine({ store, artifacts: new ArtifactStore(dir) }).create(definition, {}, {
        id: "run",
      });
      strictEqual((await start(store)).status, "failed");
      mend();
      for (const path of lost) files.delete(path);
      order.splice(0);
      deepStrictEqual(await start(store.restarted()), { status: "done", output: "second" });
      deepStrictEqual(order, [...lost, "use 3", "use 4"]);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
