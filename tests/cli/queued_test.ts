import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { countsOf, queuedOf } from "../../cli/queued.ts";
import { endAll, freshHome, json, remains, rl, SMALL } from "./fixtures.ts";

type Listed = {
  id: string;
  status: string;
  queue: string | null;
  priority: number;
  position: number | null;
};

Deno.test.afterAll(endAll);

Deno.test("queuedOf() is where a detached run waits, and nothing for one that starts here", () => {
  deepStrictEqual(queuedOf({}), undefined);
  deepStrictEqual(queuedOf({ detach: true }), {
    queue: "default",
    priority: 0,
    needs: undefined,
  });
  deepStrictEqual(queuedOf({ detach: true, queue: "night", priority: -2, needs: ["gpu=4"] }), {
    queue: "night",
    priority: -2,
    needs: { gpu: 4 },
  });
});

Deno.test("queuedOf() refuses options of a queue without --detach", () => {
  for (const flags of [{ queue: "night" }, { priority: 0 }, { needs: ["gpu=1"] }]) {
    throws(() => queuedOf(flags), /--queue, --priority and --needs require --detach/);
  }
});

Deno.test("countsOf() reads counts by name, and a bare name as the caller says", () => {
  deepStrictEqual(countsOf(["gpu=4", "a.b-c=0"], "--slots"), { gpu: 4, "a.b-c": 0 });
  deepStrictEqual(countsOf(["night", "day=2"], "--queue", Infinity), { night: Infinity, day: 2 });
  for (const text of ["gpu", "gpu=", "gpu=-1", "gpu=1.5", "=2", "a b=2"]) {
    throws(() => countsOf([text], "--needs"), /give NAME=N, N a whole number/, text);
  }
});

Deno.test("run --detach checks and records the run, prints its id, starts nothing", async () => {
  const home = await freshHome();
  const at = ["--home", home];
  const wrong = await rl(["run", SMALL, ...at, "--detach", "online.rounds=none"]);
  deepStrictEqual([wrong.code, wrong.out], [2, ""]);
  const lone = await rl(["run", SMALL, ...at, "--priority", "3"]);
  strictEqual(lone.code, 2);
  match(lone.err, /--queue, --priority and --needs require --detach/);
  const badly = await rl(["run", SMALL, ...at, "--detach", "--needs", "gpu=some"]);
  strictEqual(badly.code, 2);
  match(badly.err, /Cannot use 'gpu=some' for --needs: give NAME=N/);
  const first = await rl(["run", SMALL, ...at, "--id", "first", "--detach"]);
  deepStrictEqual([first.code, first.out], [0, "first\n"], first.err);
  await rl(["run", SMALL, ...at, "--id", "urgent", "--detach", "--priority", "5"]);
  await rl(["run", SMALL, ...at, "--id", "other", "--detach", "--queue", "night"]);
  const listed = (await json<Listed[]>(["runs", ...at])).map((
    r,
  ) => [r.id, r.status, r.queue, r.priority, r.position]);
  deepStrictEqual(listed.sort(), [
    ["first", "queued", "default", 0, 2],
    ["other", "queued", "night", 0, 1],
    ["urgent", "queued", "default", 5, 1],
  ]);
  strictEqual((await rl(["cancel", "first", ...at])).out, "run first is cancelled\n");
  strictEqual((await json<{ status: string }>(["show", "first", ...at])).status, "cancelled");
  deepStrictEqual(await remains(home), { runs: 3, processes: 0 });
});
