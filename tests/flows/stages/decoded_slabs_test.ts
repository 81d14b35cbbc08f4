import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { encodeSlab, type GeneratedSlab, Sampling } from "../../../data/mod.ts";
import { ArtifactStore } from "../../../engine/mod.ts";
import { decodeAhead, decodedSlab } from "../../../flows/stages/decoded_slabs.ts";
import { scratch } from "../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const slabOf = (slab: string): GeneratedSlab => ({
  slab,
  version: "v1",
  sampling: Sampling.parse({}),
  groups: [],
});

Deno.test("decodedSlab() decodes a slab once for all who ask for it", async () => {
  const ref = await artifacts.put(encodeSlab(slabOf("0-1")));
  const [first, second] = await Promise.all([
    decodedSlab(ref, artifacts),
    decodedSlab(ref, artifacts),
  ]);
  deepStrictEqual(first, slabOf("0-1"));
  strictEqual(first, second);
});

Deno.test("decodedSlab() reads again after a read that failed", async () => {
  const bytes = encodeSlab(slabOf("2-3"));
  const elsewhere = new ArtifactStore(`${await scratch()}/artifacts`);
  const ref = await elsewhere.put(bytes);
  await rejects(decodedSlab(ref, artifacts));
  await artifacts.put(bytes);
  strictEqual((await decodedSlab(ref, artifacts)).slab, "2-3");
});

Deno.test("decodeAhead() keeps what was decoded before it became an artifact", async () => {
  const bytes = encodeSlab(slabOf("4-5"));
  decodeAhead(bytes);
  const ref = await new ArtifactStore(`${await scratch()}/artifacts`).put(bytes);
  // This store has no such artifact: it is not asked.
  strictEqual((await decodedSlab(ref, artifacts)).slab, "4-5");
});

Deno.test("decodeAhead() of bytes that are no slab fails only who asks for them", async () => {
  const bytes = new TextEncoder().encode("no slab");
  decodeAhead(bytes);
  const ref = await artifacts.put(bytes);
  await rejects(decodedSlab(ref, artifacts), TypeError);
});
