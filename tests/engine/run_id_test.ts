import { deepStrictEqual, ok, rejects, strictEqual, throws } from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import {
  ArtifactStore,
  checkRunId,
  Engine,
  graph,
  InvalidInputError,
  isRunId,
  newRunId,
  RunId,
} from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { z } from "zod";
import { BAD_IDS } from "../contracts/run_ids.ts";

const GOOD = ["a", "7", "quickstart-5f0c1a9e", "Exp_1.v2", "a..b", "a.", "a".repeat(128)];

Deno.test("a run's id is one plain name of a file", () => {
  for (const id of GOOD) strictEqual(checkRunId(id), id);
  for (const id of BAD_IDS) {
    strictEqual(RunId.safeParse(id).success || isRunId(id), false, JSON.stringify(id));
    throws(() => checkRunId(id), /Cannot use '[^\n]*' as a run's id: .*Fix: choose another --id/);
  }
});

Deno.test("no valid id leads out of its directory, or into that of a different id", () => {
  const characters = fc.array(fc.constantFrom(..."aZ0._-/\\ ~:\n%"), { maxLength: 6 });
  const ids = fc.oneof(
    fc.string(),
    characters.map((chosen) => chosen.join("")),
    fc.constantFrom(...BAD_IDS),
  );
  fc.assert(
    fc.property(ids, (id) => {
      if (isRunId(id)) {
        deepStrictEqual([dirname(join("/home", id)), basename(join("/home", id))], ["/home", id]);
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("an id that we make is one, whatever the name that it begins with", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ maxLength: 300 }), fc.constantFrom("試行 🙂", ...BAD_IDS)),
      (name) => {
        ok(isRunId(newRunId(name)), newRunId(name));
      },
    ),
  );
  ok(newRunId("my run/lr 3").startsWith("my-run-lr-3-"));
});

Deno.test("an engine records no run under an id that cannot be one", async () => {
  const store = new MemoryStore();
  const engine = new Engine({ store, artifacts: new ArtifactStore(await Deno.makeTempDir()) });
  const empty = graph("any name/at all", z.object({}), (g) => g.constant(1));
  for (const id of BAD_IDS) await rejects(engine.create(empty, {}, { id }), InvalidInputError);
  strictEqual((await store.heads()).length, 0);
  ok(isRunId((await engine.create(empty, {})).id));
});
