import fc from "fast-check";
import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { InvalidInputError } from "../../../engine/mod.ts";
import { placeRanks, type Room } from "../../../workers/fleet/placement.ts";

const room = (host: string, free: number, shared = true): Room => ({ host, free, shared });
const trainer = (ranks: number, hosts?: string[]) => ({
  group: "trainer",
  role: "trainer",
  ranks,
  hosts,
});

Deno.test("placeRanks() gives every rank a host with room, on as few hosts as possible", () => {
  const rooms = fc.array(
    fc.record({ free: fc.integer({ min: 0, max: 6 }), shared: fc.boolean() }),
    { maxLength: 5 },
  );
  fc.assert(fc.property(rooms, fc.integer({ min: 1, max: 12 }), (frees, ranks) => {
    const hosts = frees.map(({ free, shared }, i) => room(`h${i}`, free, shared));
    const alone = hosts.filter(({ free }) => free >= ranks);
    const sharing = hosts.filter((one) => one.shared);
    const shared = sharing.map(({ free }) => free).toSorted((a, b) => b - a);
    const fits = alone.length > 0 || shared.reduce((sum, free) => sum + free, 0) >= ranks;
    if (!fits) return void throws(() => placeRanks(trainer(ranks), hosts), InvalidInputError);
    const places = placeRanks(trainer(ranks), hosts);
    const counts = Map.groupBy(places, (host) => host);
    strictEqual(places.length, ranks);
    for (const [name, { length }] of counts) {
      const { free, shared } = hosts.find(({ host }) => host === name)!;
      ok(length <= free && (counts.size === 1 || shared));
    }
    const turns = places.filter((host, i) => host !== places[i - 1]);
    strictEqual(turns.length, counts.size); // Each host's are in a row.
    if (alone.length > 0) return deepStrictEqual([...counts.keys()], [alone[0]!.host]);
    const sums = shared.map((_, i) => shared.slice(0, i + 1).reduce((sum, free) => sum + free, 0));
    strictEqual(counts.size, sums.findIndex((sum) => sum >= ranks) + 1);
  }));
});

Deno.test("placeRanks() deals a group to the hosts that it names, whatever their room", () => {
  const rooms = [room("one", 0), room("two", 0), room("alone", 8, false)];
  deepStrictEqual(placeRanks(trainer(3, ["two", "one"]), rooms), ["two", "two", "one"]);
  deepStrictEqual(placeRanks(trainer(1, ["two", "one"]), rooms), ["two"]);
  throws(
    () => placeRanks(trainer(2, ["three"]), rooms),
    /on host 'three' because the run has one, two, alone/,
  );
  throws(() => placeRanks(trainer(2, ["one", "alone"]), rooms), /'alone' has no network interface/);
});

Deno.test("placeRanks() says which hosts have how much room", () => {
  const wanted = /the 3 ranks of trainer .*role 'trainer' \(one: 1, two: 2 \(no interface\)\)/;
  throws(() => placeRanks(trainer(3), [room("one", 1), room("two", 2, false)]), wanted);
});
