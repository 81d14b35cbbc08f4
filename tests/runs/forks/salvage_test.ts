import { ok, strictEqual } from "node:assert/strict";
import { reportEnd } from "../../../cli/run_end.ts";
import { loopAndRound } from "../../../cli/display/loop_and_round.ts";
import { ArtifactStore, BadDataError, EngineError, type Outcome } from "../../../engine/mod.ts";
import { FakeTrainer, type MemoryStore } from "../../../testing/mod.ts";
import { forkRun, Home } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

/**
 * Every so many rows and artifacts are damaged, each in a run of its own: all of them pass, and
 * take longer.
 */
const LOOKED_AT = 4;

/** As a new process finds it: nothing is in memory. */
function reopened(home: Home): Home {
  return new Home(home.dir, {
    store: (home.store as MemoryStore).restarted(),
    artifacts: new ArtifactStore(home.artifacts.dir),
  });
}

/**
 * A run of six rounds that stopped while it trained the last; its newest checkpoint is of the
 * fourth.
 */
async function stopped(): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "run");
  const trainer = new FakeTrainer(home);
  trainer.hook = ({ op, key }, moment) => {
    if (op === "train" && key.startsWith("round/6/") && moment === "begin") {
      throw new BadDataError("Cannot continue");
    }
  };
  strictEqual((await executeFake(home, "run", { trainer })).status, "failed");
  return reopened(home);
}

/** How a resume of it ended, with what the command line then says. */
async function resumed(
  home: Home,
): Promise<{ outcome: Outcome; message: string; digest: string | null }> {
  let digest: string | null = null;
  const outcome = await executeFake(home, "run").then(async (ended): Promise<Outcome> => {
    digest = ended.digest;
    if (ended.status === "done") return { status: "done", output: null };
    return { status: "failed", error: JSON.parse((await home.store.head("run"))!.error!) };
  }, (error): Outcome => {
    ok(error instanceof EngineError, error.stack); // Anything else ends in a stack trace.
    return { status: "failed", error: error.toJSON() };
  });
  const lines: string[] = [];
  const head = (await home.store.head("run"))!;
  await reportEnd(head, { outcome, home, note: (text) => lines.push(text) });
  return { outcome, message: lines.join("\n"), digest };
}

/** Does what the printed command says, where it says one. Returns the round. */
async function forkAsAdvised(home: Home, message: string): Promise<number | null> {
  const [, place] = /deno task rl fork run --round (\S+)/.exec(message) ?? [];
  if (place === undefined) return null;
  const at = loopAndRound(place)!;
  const child = await forkRun(home, (await home.store.head("run"))!, { ...at, id: "child" });
  strictEqual((await executeFake(home, child.id)).status, "done", message);
  return at.round;
}

type Seen = { done: number; rounds: Set<number | null> };

/** Damages, resumes, and where the resume says so forks. */
async function check(
  damage: (home: Home) => Promise<string> | string,
  calm: string,
  seen: Seen,
): Promise<void> {
  const home = await stopped();
  try {
    const what = await damage(home);
    const { outcome, message, digest } = await resumed(reopened(home));
    if (outcome.status === "done") {
      strictEqual(digest, calm, what);
      seen.done++;
      return;
    }
    ok(
      /missing|damaged|sha256 is|bytes, not|has no/.test(message) &&
        /Restore it from a copy/.test(message),
      `${what}: ${message}`,
    );
    ok(!/Nothing recorded is lost/.test(message), `${what}: ${message}`);
    seen.rounds.add(await forkAsAdvised(reopened(home), message));
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
}

async function calmDigest(): Promise<{ digest: string; rows: number; artifacts: number }> {
  const home = await stopped();
  const rows = (home.store as MemoryStore).rows("run").length;
  const artifacts = filesOf(home).length;
  const { digest } = await resumed(home);
  await Deno.remove(home.dir, { recursive: true });
  return { digest: digest!, rows, artifacts };
}

function filesOf({ artifacts: { dir } }: Home): string[] {
  const folders = [...Deno.readDirSync(dir)].filter(({ name }) => name.length === 2).map((
    { name },
  ) => name).sort();
  return folders.flatMap((folder) =>
    [...Deno.readDirSync(`${dir}/${folder}`)].map(({ name }) => `${dir}/${folder}/${name}`)
  );
}

const calm = await calmDigest();

Deno.test("a run with a damaged row ends whole, or names a fork that works", async () => {
  const seen: Seen = { done: 0, rounds: new Set() };
  for (let at = 0; at < calm.rows; at += LOOKED_AT) {
    await check(
      (home) => {
        const store = home.store as MemoryStore;
        const row = store.rows("run")[at]!;
        store.damage("run", { seq: row.seq, value: "\0\u{fffd}garbage" });
        return `${row.kind} ${row.key}`;
      },
      calm.digest,
      seen,
    );
  }
  ok(seen.done > 0, "what a newer checkpoint makes needless is not asked for");
  ok([...seen.rounds].some((round) => round !== null && round >= 4), [...seen.rounds].join());
});

Deno.test("a run with a lost artifact ends whole, or names a fork that works", async () => {
  const seen: Seen = { done: 0, rounds: new Set() };
  for (let at = 0; at < calm.artifacts; at += LOOKED_AT) {
    await check(
      (home) => {
        const path = filesOf(home)[at]!;
        if (at % 2 === 0) Deno.removeSync(path);
        else Deno.writeTextFileSync(path, "garbage");
        return path;
      },
      calm.digest,
      seen,
    );
  }
  ok(seen.done > 0, "what a newer checkpoint makes needless is not asked for");
});
