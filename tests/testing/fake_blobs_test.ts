import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { declare, framesOf } from "../../testing/fake_blobs.ts";
import { LIMITS } from "../../workers/mod.ts";

Deno.test("framesOf() cuts blobs into frames that a socket takes, and loses no byte", () => {
  const long = Uint8Array.from({ length: LIMITS.frame_bytes_max + 5 }, (_, i) => i % 251);
  const frames = [...framesOf("t", [Uint8Array.of(1), long])];
  ok(frames.every(({ data }) => data.length < LIMITS.frame_bytes_max));
  deepStrictEqual(frames.map(({ task, blob, total }) => [task, blob, total]), [
    ["t", 0, 1],
    ...Array.from({ length: 3 }, () => ["t", 1, long.length]),
  ]);
  const joined = new Uint8Array(long.length);
  for (const { blob, offset, data } of frames) if (blob === 1) joined.set(data, offset);
  strictEqual(Buffer.compare(joined, long), 0);
});

Deno.test("framesOf() sends an empty blob as one empty frame, and nothing for no blob", () => {
  deepStrictEqual([...framesOf("t", [new Uint8Array()])], [
    { task: "t", blob: 0, offset: 0, total: 0, data: new Uint8Array() },
  ]);
  deepStrictEqual([...framesOf("t", [])], []);
});

Deno.test("declare() gives a blob's length and sha256", () => {
  deepStrictEqual(declare(new TextEncoder().encode("abc")), {
    sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    bytes: 3,
  });
});
