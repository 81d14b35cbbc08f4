/** Runs that older versions recorded with real workers: their checkpoints, publications and journals, by the command line. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { type Numerics, VersionRecord } from "../../data/mod.ts";
import { JOURNAL_VERSION } from "../../engine/mod.ts";
import { Home, runView } from "../../flows/mod.ts";
import { VersionNote } from "../../workers/mod.ts";
import { type Finished, rl } from "../crash/runs.ts";
import { NUMERICS, VERSIONS, withRecorded } from "./homes.ts";

type Ended = { digest: string | null; journal: number; numerics: Pick<Numerics, "device" | "packages"> };

/** How a run ended, and what decided the bits of its last step. */
async function endOf(home: Home, run: string): Promise<Ended> {
  const head = (await home.store.head(run))!;
  const { policy } = await runView(home.store, head, { workers: [], metrics: {} });
  const rows = await home.store.read(run, { kinds: ["note/version"], newest_first: true, limit: 1 });
  const { record } = VersionNote.parse(JSON.parse(rows[0]!.value));
  const version = VersionRecord.parse(await home.artifacts.getJson(record));
  if (version.kind !== "trained") throw new Error(`Cannot read the numerics of ${run} as it has trained nothing`);
  const { device, packages } = version.numerics;
  return { digest: policy?.digest ?? null, journal: head.journal, numerics: { device, packages } };
}

function succeeded(what: string, { code, output }: Finished): void {
  strictEqual(code, 0, `${what}:\n${output}`);
}

for (const version of VERSIONS) {
  Deno.test(`recorded by ${version}: real workers resume, verify and fork its runs`, async () => {
    await withRecorded(version, async (dir) => {
      const command = (...args: string[]) => rl([...args, "--home", dir], NUMERICS);
      const [resumed, forked, verified] = await Promise.all([
        command("resume", "cut"),
        command("fork", "done", "--round", "2", "--id", "child"),
        command("verify", "done"),
      ]);
      succeeded("resume", resumed);
      succeeded("fork", forked);
      const home = Home.open(dir);
      const [done, cut, child] = await Promise.all(["done", "cut", "child"].map((run) => endOf(home, run)));
      await home.close();
      deepStrictEqual([done!.journal, cut!.journal, child!.journal], [1, JOURNAL_VERSION, JOURNAL_VERSION]);
      if (!isDeepStrictEqual(done!.numerics, child!.numerics)) {
        // Other packages or another kind of processor: the bits may be others, and then it says so.
        ok(verified.code === 0 || /same hardware, thread count and package versions/.test(verified.output));
        return;
      }
      succeeded("verify", verified);
      deepStrictEqual([cut!.digest, child!.digest], [done!.digest, done!.digest]);
    });
  });
}
