import {
  deepStrictEqual,
  notDeepStrictEqual,
  rejects,
  strictEqual,
  throws,
} from "node:assert/strict";
import { MemoryStore, SimulatedOutage, SimulatedStore, SimulatedWorld } from "../../testing/mod.ts";
import { newRun } from "../contracts/store_rows.ts";

Deno.test("SimulatedWorld: one seed is one order of what is due at the same moment", async () => {
  const order = async (seed: number) => {
    const [world, seen] = [new SimulatedWorld(seed), [] as number[]];
    for (let n = 0; n < 20; n++) world.schedule(5, `event ${n}`, () => void seen.push(n));
    strictEqual(await world.run(), true);
    return seen;
  };
  deepStrictEqual(await order(1), await order(1));
  notDeepStrictEqual(await order(1), await order(2));
});

Deno.test("SimulatedWorld: events come by their time, and time is theirs", async () => {
  const [world, seen] = [new SimulatedWorld(3), [] as [string, number][]];
  for (const [name, at] of [["c", 30], ["a", 10], ["b", 20]] as const) {
    world.schedule(at, name, () => void seen.push([name, world.time_ms]));
  }
  await world.run();
  deepStrictEqual(seen, [["a", 10], ["b", 20], ["c", 30]]);
  strictEqual(world.events, 3);
});

Deno.test("SimulatedWorld.run() stops at its limit, and resumes with what was due", async () => {
  const world = new SimulatedWorld(3);
  const forever = (): void => world.schedule(10, "tick", forever);
  forever();
  strictEqual(await world.run({ limit_ms: 95 }), false);
  strictEqual(world.time_ms, 90);
  strictEqual(await world.run({ ended: () => world.events >= 12 }), true);
  strictEqual(world.time_ms, 120);
});

Deno.test("SimulatedWorld: numbers stay within their bounds", () => {
  const world = new SimulatedWorld(4);
  const drawn = new Set(Array.from({ length: 200 }, () => world.between(2, 4)));
  deepStrictEqual([...drawn].sort(), [2, 3, 4]);
  deepStrictEqual([world.chance(0), world.chance(1)], [false, true]);
  throws(() => world.pick([]), RangeError);
});

Deno.test("SimulatedProcess hears all when it thaws, and nothing once it is dead", async () => {
  const world = new SimulatedWorld(5);
  const process = world.start("engine");
  const heard: string[] = [];
  process.freeze();
  for (const [at, what] of ["one", "two", "three"].entries()) {
    process.schedule(at, what, () => void heard.push(what));
  }
  await world.run();
  strictEqual(heard.length, 0);
  process.thaw();
  await world.run();
  strictEqual(heard.join(), "one,two,three");
  process.schedule(1, "late", () => void heard.push("late"));
  let deaths = 0;
  process.onDeath(() => deaths++);
  process.kill();
  process.onDeath(() => deaths++);
  await world.run();
  deepStrictEqual([heard.length, deaths, process.state], [3, 2, "dead"]);
});

Deno.test("SimulatedWorld's clock sleeps in virtual time, unless it is aborted", async () => {
  const world = new SimulatedWorld(6);
  const controller = new AbortController();
  const slept = world.clock.sleep(60_000).then(() => world.clock.monotonic());
  const aborted = rejects(world.clock.sleep(1e9, controller.signal), /enough/);
  controller.abort(new Error("enough"));
  await aborted;
  await world.run({ limit_ms: 60_000 });
  strictEqual(await slept, 60_000);
});

Deno.test("SimulatedStore: a lost call does nothing, an unanswered one is done", async () => {
  for (
    const [fate, moment, there] of [["lost", "before", 0], ["unanswered", "after", 1]] as const
  ) {
    const world = new SimulatedWorld(7);
    const shared = new MemoryStore({ clock: world.clock });
    const store = new SimulatedStore(shared, world.start("engine"), {
      fate: (call, at) => call === "create" && at === moment ? fate : "answered",
    });
    const failed = rejects(
      store.create(newRun("a")),
      SimulatedOutage,
    );
    await world.run();
    await failed;
    strictEqual((await shared.heads({ limit: 9 })).length, there, fate);
  }
});
