import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { dirname } from "node:path";
import { madeOnce, type Place, placeOf } from "../../workers/made_once.ts";
import { gate, withHome } from "./fixtures.ts";

/** Makes the place as an installation would, and counts how often. */
function maker({ path }: Place) {
  const events: string[] = [];
  const make = async () => {
    events.push("made");
    await Deno.mkdir(`${path}/bin`, { recursive: true });
    await Deno.writeTextFile(`${path}/bin/python`, "");
  };
  return { events, options: { make, onWait: () => void events.push("waits") } };
}

Deno.test("placeOf() has a different directory for each name and text", () => {
  const place = placeOf("/h", { name: "torch", text: "a" });
  ok(/^\/h\/env\/torch-[0-9a-f]{12}$/.test(place.path), place.path);
  strictEqual(place.marker, `${place.path}.ready`);
  deepStrictEqual(placeOf("/h", { name: "torch", text: "a" }), place);
  notStrictEqual(placeOf("/h", { name: "torch", text: "b" }).path, place.path);
  notStrictEqual(placeOf("/h", { name: "vllm", text: "a" }).path, place.path);
});

Deno.test("madeOnce() makes a place on first use and gives its interpreter", () =>
  withHome(async (home) => {
    const place = placeOf(home, { name: "torch", text: "" });
    const { events, options } = maker(place);
    for (const _ of [1, 2]) strictEqual(await madeOnce(place, options), `${place.path}/bin/python`);
    deepStrictEqual(events, ["made"]);
    strictEqual(JSON.parse(await Deno.readTextFile(place.marker)).kind, "torch");
  }));

Deno.test("madeOnce() lets a second maker wait for the first", () =>
  withHome(async (home) => {
    const place = placeOf(home, { name: "torch", text: "" });
    const { events, options } = maker(place);
    const [making, finish] = [gate(), gate()];
    const first = madeOnce(place, {
      ...options,
      make: async () => {
        making.open();
        await finish.opened;
        await options.make();
      },
    });
    await making.opened;
    const waits = gate();
    const second = madeOnce(place, { ...options, onWait: () => waits.open() });
    await waits.opened;
    finish.open();
    deepStrictEqual([await first, events], [await second, ["made"]]);
  }));

Deno.test("madeOnce() leaves no marker if making fails, and starts from an empty place", () =>
  withHome(async (home) => {
    const place = placeOf(home, { name: "torch", text: "" });
    const { events, options } = maker(place);
    const half = async () => {
      await Deno.mkdir(place.path);
      await Deno.writeTextFile(`${place.path}/half`, "");
      throw new Error("the network went");
    };
    await rejects(madeOnce(place, { ...options, make: half }), /the network went/);
    await rejects(Deno.stat(place.marker), Deno.errors.NotFound);
    await madeOnce(place, options);
    await rejects(Deno.stat(`${place.path}/half`), Deno.errors.NotFound);
    deepStrictEqual(events, ["made"]);
  }));

Deno.test("madeOnce() makes a place again whose interpreter is gone", () =>
  withHome(async (home) => {
    const place = placeOf(home, { name: "torch", text: "" });
    const { events, options } = maker(place);
    await Deno.remove(dirname(await madeOnce(place, options)), { recursive: true });
    await madeOnce(place, options);
    deepStrictEqual(events, ["made", "made"]);
  }));
