/**
 * Runs that older versions recorded with real workers: their checkpoints, publications and
 * journals, by the command line.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { JOURNAL_VERSION } from "../../engine/mod.ts";
import { Home, runView } from "../../runs/mod.ts";
import { type Finished, rl } from "../crash/runs.ts";
import { NUMERICS, VERSIONS, withRecorded } from "./homes.ts";

/** What was recorded whole, what is resumed, and what is forked. */
const RUNS = ["done", "cut", "child"];

async function digestOf(home: Home, run: string): Promise<string | null> {
  const head = (await home.store.head(run))!;
  return (await runView(home.store, head, { workers: [], metrics: {} })).policy?.digest ?? null;
}

/**
 * Relative. What decides it is not the recorded device alone: processors of one name differ in the
 * last bit of a loss.
 */
const OTHER_PROCESSOR = 1e-9;

/**
 * Whether the recorded run was redone bit by bit. Where it was not, what differs must be no more
 * than another processor explains.
 */
function redoneExactly({ code, output }: Finished): boolean {
  if (code === 0) return true;
  const number = "(-?[0-9.]+(?:e[-+]?[0-9]+)?)";
  const drift = new RegExp(
    `recorded loss ${number}, grad_norm ${number}; redone loss ${number}, grad_norm ${number}\\.`,
  );
  const [loss, norm, redoneLoss, redoneNorm] = (drift.exec(output) ?? []).slice(1).map(Number);
  const isNear = (a?: number, b?: number) => Math.abs(a! - b!) <= OTHER_PROCESSOR * Math.abs(a!);
  ok(isNear(loss, redoneLoss) && isNear(norm, redoneNorm), output);
  return false;
}

function succeeded(what: string, { code, output }: Finished): void {
  strictEqual(code, 0, `${what}:\n${output}`);
}

for (const version of VERSIONS) {
  Deno.test(`recorded by ${version}: real workers resume, verify and fork its runs`, async () => {
    await withRecorded(version, async (dir) => {
      const command = (...args: string[]) => rl([...args, "--home", dir], NUMERICS);
      const [mended, resumed, forked, verified] = await Promise.all([
        command("resume", "failed"), // Its reward raised when it was recorded, and was fixed since.
        command("resume", "cut"),
        command("fork", "done", "--round", "2", "--id", "child"),
        command("verify", "done"),
      ]);
      succeeded("resume of the one that failed", mended);
      succeeded("resume", resumed);
      succeeded("fork", forked);
      const home = Home.open(dir);
      const journals = await Promise.all(
        RUNS.map(async (run) => (await home.store.head(run))!.journal),
      );
      const digests = await Promise.all(RUNS.map((run) => digestOf(home, run)));
      await home.close();
      deepStrictEqual(journals, [1, JOURNAL_VERSION, JOURNAL_VERSION]);
      if (redoneExactly(verified)) strictEqual(new Set(digests).size, 1, `${digests}`);
    });
  });
}
