import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { ArtifactRef } from "../../data/mod.ts";

const sha256 = "0123456789abcdef".repeat(4);
const problem = (value: unknown) => ArtifactRef.safeParse(value).error?.issues[0]?.message;

Deno.test("ArtifactRef takes the hash and the length of any bytes", () => {
  fc.assert(fc.property(fc.uint8Array(), (bytes) => {
    const hash = createHash("sha256").update(bytes).digest("hex");
    const ref = { sha256: hash, bytes: bytes.length };
    deepStrictEqual(ArtifactRef.parse(ref), ref);
  }));
});

Deno.test("ArtifactRef has one spelling of a hash, so that one file has one name", () => {
  const wrong = [
    sha256.slice(1),
    `${sha256}0`,
    sha256.toUpperCase(),
    `${sha256}\n`,
    `sha256:${sha256}`,
  ];
  for (const hash of wrong) {
    strictEqual(problem({ sha256: hash, bytes: 1 }), "sha256 is 64 hexadecimal digits", hash);
  }
});

Deno.test("ArtifactRef refuses a length that no file has, and anything beside its fields", () => {
  for (const bytes of [-1, 0.5, 2 ** 53]) {
    strictEqual(ArtifactRef.safeParse({ sha256, bytes }).success, false, `${bytes}`);
  }
  strictEqual(problem({ sha256, bytes: 1, path: "/tmp/x" }), 'Unrecognized key: "path"');
});
