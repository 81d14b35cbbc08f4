import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { digestFile } from "../../../data/mod.ts";
import { byteLines, readJsonLines } from "../../../data/sources/json_lines.ts";

async function file(text: string | Uint8Array): Promise<string> {
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  await Deno.writeFile(path, typeof text === "string" ? new TextEncoder().encode(text) : text);
  return path;
}

Deno.test("digestFile() is the sha256 of the file's bytes", async () => {
  deepStrictEqual(await digestFile(await file("abc")), {
    sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    bytes: 3,
  });
});

Deno.test("readJsonLines() numbers lines as an editor does, blank ones too", async () => {
  const path = await file(`{"a":1}\r\n\n  {"a":"é"}`);
  const lines = await Array.fromAsync(readJsonLines(path));
  deepStrictEqual(lines, [{ line: 1, value: { a: 1 } }, { line: 3, value: { a: "é" } }]);
});

Deno.test("byteLines() gives every byte but the newlines, and where each line starts", async () => {
  const text = new TextEncoder().encode(`{"a":1}\r\n\n${" ".repeat(200_000)}{"a":"é"}`);
  for await (const { start, bytes } of byteLines(await file(text))) {
    deepStrictEqual(new Uint8Array(bytes), text.slice(start, start + bytes.length));
    const next = start + bytes.length;
    strictEqual(next === text.length || text[next] === 10, true);
  }
});

Deno.test("readJsonLines() names file and line of what is no object", async () => {
  const path = await file(`{"a":1}\n[2]\n`);
  await rejects(
    Array.fromAsync(readJsonLines(path)),
    (error: Error) => error.message.includes(`${path}:2`),
  );
});
