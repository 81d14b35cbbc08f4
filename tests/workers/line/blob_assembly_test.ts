import fc from "fast-check";
import { deepStrictEqual, throws } from "node:assert/strict";
import { createHash } from "node:crypto";
import { InfrastructureError } from "../../../engine/mod.ts";
import { BlobAssembly } from "../../../workers/line/blob_assembly.ts";

const declare = (data: Uint8Array) => ({
  sha256: createHash("sha256").update(data).digest("hex"),
  bytes: data.length,
});

function add(
  blobs: BlobAssembly,
  data: Uint8Array,
  { chunk, blob = 0 }: { chunk: number; blob?: number },
): void {
  for (let offset = 0; offset === 0 || offset < data.length; offset += chunk) {
    blobs.add({
      task: "t",
      blob,
      offset,
      total: data.length,
      data: data.slice(offset, offset + chunk),
    });
  }
}

Deno.test("BlobAssembly gives back what was cut, for any cut and after a second sending", () => {
  const data = fc.uint8Array({ maxLength: 50 });
  fc.assert(fc.property(data, data, fc.integer({ min: 1, max: 60 }), (a, b, chunk) => {
    const blobs = new BlobAssembly();
    blobs.expect("t");
    add(blobs, a, { chunk });
    add(blobs, b, { chunk, blob: 1 });
    add(blobs, a, { chunk: 7 });
    deepStrictEqual(blobs.take("t", [declare(a), declare(b)]), [a, b]);
  }));
});

Deno.test("BlobAssembly.take() refuses a missing, short or damaged blob", () => {
  const data = new Uint8Array([1, 2, 3, 4]);
  const expectFailure = (fill: (blobs: BlobAssembly) => void, words: RegExp) => {
    const blobs = new BlobAssembly();
    blobs.expect("t");
    fill(blobs);
    throws(
      () => blobs.take("t", [declare(data)]),
      (error: Error) => error instanceof InfrastructureError && words.test(error.message),
    );
  };
  expectFailure(() => {}, /incomplete: 0 of 4/);
  expectFailure(
    (blobs) => blobs.add({ task: "t", blob: 0, offset: 0, total: 4, data: data.slice(0, 2) }),
    /incomplete: 2 of 4/,
  );
  expectFailure((blobs) => add(blobs, new Uint8Array([1, 2, 3, 5]), { chunk: 4 }), /damaged/);
});

Deno.test("BlobAssembly.add() throws on a gap, on too much, and on what is no frame", () => {
  const data = new Uint8Array(2);
  const wrong = [
    { task: "t", blob: 0, offset: 2, total: 4, data },
    { task: "t", blob: 0, offset: 0, total: 1, data },
    { task: "t", blob: 0, offset: 0, total: 2 ** 40, data },
    { task: "t", blob: 0, offset: -1, total: 4, data },
    { task: "t", blob: 0, offset: 0, total: 4, data: "text" },
    "no object",
  ];
  for (const frame of wrong) {
    const blobs = new BlobAssembly();
    blobs.expect("t");
    throws(() => blobs.add(frame));
  }
});

Deno.test("BlobAssembly holds nothing for tasks that nobody waits for", () => {
  const blobs = new BlobAssembly();
  add(blobs, new Uint8Array(4), { chunk: 4 });
  throws(() => blobs.take("t", [declare(new Uint8Array(4))]), /incomplete: 0 of 4/);
});
