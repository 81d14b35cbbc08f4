import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { digestFile } from "../../../data/mod.ts";
import { blocksOf, lineBlocks, linesIn, readJsonLines } from "../../../data/sources/json_lines.ts";

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

Deno.test("lineBlocks() has every byte, and linesIn() where each line starts", async () => {
  const text = new TextEncoder().encode(`{"a":1}\r\n\n${" ".repeat(200_000)}{"a":"é"}`);
  const lengths: number[] = [];
  for await (const block of lineBlocks(await file(text))) {
    for (const { start, length, text: line } of linesIn(block)) {
      deepStrictEqual(new TextEncoder().encode(line), text.slice(start, start + length));
      strictEqual(start + length === text.length || text[start + length] === 10, true);
      lengths.push(length);
    }
  }
  deepStrictEqual(lengths, [8, 0, 200_010]);
});

Deno.test("linesIn() reads the same lines however the file is cut, and marks only what is no UTF-8", async () => {
  const whole = ["é", "", "\uFEFFx", "caf\xe9", "😀"].map((text) =>
    text.startsWith("caf")
      ? Uint8Array.from(text, (one) => one.charCodeAt(0))
      : new TextEncoder().encode(text)
  ).flatMap((bytes) => [...bytes, 10]);
  for (let size = 1; size <= whole.length; size++) {
    const read: string[] = [];
    for await (const block of blocksOf(chunksOf(whole, size), "rows.jsonl")) {
      for (const { line, text } of linesIn(block)) read.push(`${line} ${text.trim()}`);
    }
    deepStrictEqual(read, ["1 é", "2 ", "3 x", "4 caf\udc80", "5 😀"]);
  }
});

async function* chunksOf(bytes: number[], size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    yield await Uint8Array.from(bytes.slice(at, at + size));
  }
}

Deno.test("readJsonLines() names file and line of what is no object", async () => {
  const path = await file(`{"a":1}\n[2]\n`);
  await rejects(
    Array.fromAsync(readJsonLines(path)),
    (error: Error) => error.message.includes(`${path}:2`),
  );
});
