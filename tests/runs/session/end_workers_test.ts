import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { processOwner, type Store, systemClock } from "../../../engine/mod.ts";
import { abandonOwnRuns, cancelAndEnd, Home } from "../../../runs/mod.ts";
import { homeNonce } from "../../../workers/mod.ts";
import {
  NONCE_VARIABLE,
  nonceText,
  processNonce,
  sweep,
} from "../../../workers/processes/process_sweep.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";

const LEASE = { lease_ms: 60_000 };

/** A process that the engine of each of these runs left, and what ended it; null: nothing. */
async function ended(
  home: Home,
  runs: string[],
  work: () => Promise<unknown>,
): Promise<Record<string, Deno.Signal | null>> {
  const identity = await homeNonce(home.dir);
  const children = runs.map((run) =>
    new Deno.Command("sleep", {
      args: ["600"],
      env: { [NONCE_VARIABLE]: nonceText(processNonce(identity, run)) },
      detached: true,
      stdin: "null",
      stdout: "null",
    }).spawn()
  );
  // Of whoever is spared, the end is that of the test.
  const ends = children.map(({ status }) => status.then(({ signal }) => signal));
  let spared = new Set<number>();
  try {
    await work();
    spared = new Set(children.flatMap(({ pid }, i) => isAlive(pid) ? [i] : []));
  } finally {
    await sweep(({ home }) => home === identity, { clock: systemClock });
  }
  const signals = await Promise.all(ends);
  return Object.fromEntries(runs.map((run, i) => [run, spared.has(i) ? null : signals[i]!]));
}

/** A process that was killed and that nobody has asked about yet counts as dead. */
function isAlive(pid: number): boolean {
  try {
    const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
    return !["Z", "X"].includes(stat.slice(stat.lastIndexOf(")") + 2)[0]!);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test("cancelAndEnd() ends the workers of that run, and no others", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  let status = "";
  const ends = await ended(home, ["a", "b"], async () => {
    ({ status } = await cancelAndEnd(home, "a"));
  });
  deepStrictEqual([status, ends], ["cancelled", { a: "SIGKILL", b: null }]);
});

Deno.test("cancelAndEnd() leaves the workers to a living engine, which it only asks", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await home.store.claim("a", processOwner(), LEASE);
  let status = "";
  const ends = await ended(home, ["a"], async () => {
    ({ status } = await cancelAndEnd(home, "a"));
  });
  deepStrictEqual([status, ends], ["running", { a: null }]);
  strictEqual((await home.store.head("a"))!.status, "running");
});

Deno.test("abandonOwnRuns() ends workers of the runs that this process owns", async () => {
  const home = await freshFakeHome();
  for (const run of ["mine", "other", "nobody"]) await createFakeRun(home, run);
  await home.store.claim("mine", processOwner(), LEASE);
  await home.store.claim("other", { ...processOwner(), boot_id: "of another process" }, LEASE);
  deepStrictEqual(await ended(home, ["mine", "other", "nobody"], () => abandonOwnRuns(home)), {
    mine: "SIGKILL",
    other: null,
    nobody: null,
  });
});

Deno.test("abandonOwnRuns() lets this engine record no death of a worker, and nobody take the run before", async () => {
  const { dir, artifacts, store } = await freshFakeHome();
  const rival = { ...processOwner(), boot_id: "of another process" };
  await createFakeRun(new Home(dir, { artifacts, store }), "mine");
  const { head: { epoch } } = await store.claim("mine", processOwner(), LEASE);
  const takeable: boolean[] = [];
  const take = async () => (await store.claim("mine", rival, LEASE)).claimed;
  const watched = new Proxy(store, {
    get: (target, name: keyof Store) => {
      if (name !== "release") return (target[name] as () => unknown).bind(target);
      return async (run: string, epoch: number) => {
        takeable.push(await take());
        await store.release(run, epoch);
        takeable.push(await take());
      };
    },
  });
  const late = { kind: "failure", key: "a", value: "{}" } as const;
  const ends = await ended(
    new Home(dir, { artifacts, store }),
    ["mine"],
    () => abandonOwnRuns(new Home(dir, { artifacts, store: watched })),
  );
  deepStrictEqual([ends, takeable], [{ mine: "SIGKILL" }, [false, true]]);
  deepStrictEqual(await store.append("mine", epoch, [late]), { fenced: true });
});

Deno.test("abandonOwnRuns() leaves the run unfinished, for any engine to resume at once", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "mine");
  const { head } = await home.store.claim("mine", processOwner(), LEASE);
  await abandonOwnRuns(home);
  const { status, owner, epoch } = (await home.store.head("mine"))!;
  deepStrictEqual([status, owner, epoch], ["running", null, head.epoch + 1]);
});

Deno.test("abandonOwnRuns() ends nothing if the store cannot say who owns the runs", async () => {
  const { dir, artifacts } = await freshFakeHome();
  const heads = () => Promise.reject(new Error("the store is gone"));
  const home = new Home(dir, { artifacts, store: { heads } as unknown as Store });
  deepStrictEqual(await ended(home, ["a"], () => abandonOwnRuns(home)), { a: null });
});
