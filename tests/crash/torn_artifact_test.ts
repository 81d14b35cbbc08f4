import { ok, strictEqual } from "node:assert/strict";
import { ArtifactStore } from "../../engine/mod.ts";
import { at, orphans, recorded, rl, SMALL, withFreshHome } from "./runs.ts";
import { assertEqualEnd } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

Deno.test("a torn batch is never trained on: the run stops and names the file, and with it put back it ends equal", async () => {
  const against = await sharedUndisturbed(SMALL);
  await withFreshHome(async (home) => {
    const place = { home, store: null };
    const args = ["run", SMALL, "workers.grace_s=0.5", ...at(place), "--id", "run"];
    const killed = await rl(args, { HOLDFAST_FAULT: "kill:engine@append:48" });
    strictEqual(killed.signal, "SIGKILL", killed.output);
    // What the trainer held is gone: the batches must be redone.
    strictEqual(await orphans(home), 0);
    const batch = await newestBatch(home);
    const whole = await Deno.readFile(batch);
    await Deno.writeFile(batch, whole.subarray(0, whole.length >> 1));
    const stopped = await rl(["resume", "run", ...at(place)], {});
    strictEqual(stopped.code, 3, stopped.output);
    ok(stopped.output.includes(batch.split("/").at(-1)!), stopped.output);
    await Deno.writeFile(batch, whole);
    const resumed = await rl(["resume", "run", ...at(place)], {});
    strictEqual(resumed.code, 0, resumed.output);
    await assertEqualEnd(place, "run", against);
  });
});

/** The file of the batch that the newest recorded version was trained on. */
async function newestBatch(home: string): Promise<string> {
  const artifacts = new ArtifactStore(`${home}/artifacts`);
  const { rows } = await recorded({ home, store: null }, "run");
  const note = rows.findLast(({ kind }) => kind === "note/version")!;
  const record = await artifacts.getJson(JSON.parse(note.value).record) as {
    batch: Parameters<ArtifactStore["path"]>[0];
  };
  return artifacts.path(record.batch);
}
