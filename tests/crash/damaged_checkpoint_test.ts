import { ok, strictEqual } from "node:assert/strict";
import { at, orphans, recorded, rl, show, SMALL, withFreshHome } from "./runs.ts";
import { assertEqualEnd } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/**
 * The engine dies in the last rounds, and its workers with it: what they held must come from a
 * checkpoint.
 */
const OFTEN = ["checkpoints.every_rounds=2", "checkpoints.keep_last=3", "workers.grace_s=0.5"];
const FAULT = "kill:engine@append:52";

const DAMAGES: Record<string, (file: string) => Promise<void>> = {
  "a flipped bit": async (file) => {
    const bytes = await Deno.readFile(file);
    bytes[bytes.length >> 1]! ^= 1;
    await Deno.writeFile(file, bytes);
  },
  "a file that was cut short": async (file) =>
    await Deno.truncate(file, (await Deno.stat(file)).size >> 1),
  "a file that is gone": async (file) => await Deno.remove(file),
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  Deno.test(`a checkpoint with ${name} is set aside, the one before it used, and the run ends equal`, async () => {
    const against = await sharedUndisturbed(SMALL);
    await withFreshHome(async (home) => {
      const place = { home, store: null };
      const killed = await rl(["run", SMALL, ...OFTEN, ...at(place), "--id", "run"], {
        HOLDFAST_FAULT: FAULT,
      });
      strictEqual(killed.signal, "SIGKILL", killed.output);
      strictEqual(await orphans(home), 0);
      const { dir, largest } = await newestCheckpoint(home);
      await damage(`${dir}/${largest}`);
      const resumed = await rl(["resume", "run", ...at(place)], {});
      strictEqual(resumed.code, 0, resumed.output);
      const { recoveries } = await show(home, "run");
      ok(recoveries.some(({ action }) => action === "set_aside"), JSON.stringify(recoveries));
      const loaded = recoveries.find(({ action }) => action === "load_checkpoint");
      // The rounds since the checkpoint before.
      ok(loaded && loaded.batches_redone >= 2, JSON.stringify(recoveries));
      await assertEqualEnd(place, "run", against);
    });
  });
}

/** Its directory, and the name of its largest file. */
async function newestCheckpoint(home: string): Promise<{ dir: string; largest: string }> {
  const { rows } = await recorded({ home, store: null }, "run");
  const notes = rows.filter(({ kind }) => kind === "note/checkpoint");
  const { dir, files } = JSON.parse(notes.at(-1)!.value) as {
    dir: string;
    files: { path: string; bytes: number }[];
  };
  const largest = files.toSorted((a, b) => b.bytes - a.bytes)[0]!;
  return { dir, largest: largest.path };
}
