import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { digestFile } from "../../../data/mod.ts";
import { brokenText } from "../../../data/utf8_text.ts";
import {
  blocksOf,
  type LineBlock,
  lineBlocks,
  linesIn,
  newlinesIn,
  parseLine,
  readJsonLines,
  rowsIn,
} from "../../../data/sources/json_lines.ts";

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

const placeOf = (line: number) => ({ file: "rows.jsonl", line });

/** What a reader of rows hands out, or the error that ends it. */
function outcome(rows: () => Iterable<unknown>): unknown {
  const read: unknown[] = [];
  try {
    for (const row of rows()) read.push(row);
  } catch (error) {
    read.push(String(error));
  }
  return read;
}

function* together(block: LineBlock): Generator<unknown> {
  for (const { unicode, ...row } of rowsIn(block, placeOf)) {
    if (unicode) strictEqual(brokenText(row.columns), null);
    yield row;
  }
}

function* oneByOne(block: LineBlock): Generator<unknown> {
  for (const { text, ...at } of linesIn(block)) {
    const columns = parseLine(text, placeOf(at.line));
    if (columns !== null) yield { ...at, columns };
  }
}

Deno.test("a read ahead that fails is an error of the next block, however late it is asked for", async () => {
  const path = await file("{}\n");
  const { open } = Deno;
  let reads = 0;
  Deno.open = () =>
    Promise.resolve({
      read: (buffer: Uint8Array) => {
        if (reads++ > 0) return Promise.reject(new Error("bad sector"));
        buffer.set(new TextEncoder().encode("{}\n"));
        return Promise.resolve(3);
      },
      [Symbol.dispose]() {},
    }) as ReturnType<typeof Deno.open>;
  try {
    const blocks = lineBlocks(path);
    strictEqual((await blocks.next()).value!.bytes.length, 3);
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve); // A rejection without a handler ends the process before this.
    await promise;
    await rejects(blocks.next(), /bad sector/);
  } finally {
    Deno.open = open;
  }
});

Deno.test("rowsIn() has the rows and the errors of lines that are parsed one by one", () => {
  const line = fc.oneof(
    { weight: 5, arbitrary: fc.json().map((json) => `{"a":${json}}`) },
    // Lines that together are as many objects as there are lines, but not one each.
    fc.constantFrom('{"a":[{"b":1}', '{"c":2}]}', '{"x":1},{"y":2}', '{"x":1},null,{"y":2}'),
    fc.constantFrom("", " ", "[1]", "7", "null", '{"a":1}\r', '\u00a0{"a":1}', "{", "caf\u00e9"),
    fc.constantFrom('{"t":"\\ud800"}', '{"t":"\\\\ud800"}', '{"\\uDC00":1}', '{"t":"\\u00e9"}'),
    fc.constantFrom('{"n":12345678901234567890}', '{"n":1.0}', '{"n":[1e3]}', '{"t":", 1.0"}'),
  );
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), fc.boolean(), (lines, latin1) => {
      const text = `${lines.join("\n")}\n`;
      const bytes = latin1
        ? Uint8Array.from(text, (one) => one.charCodeAt(0))
        : new TextEncoder().encode(text);
      const block = { line: 3, start: 100, bytes, ends: newlinesIn(bytes) };
      deepStrictEqual(outcome(() => together(block)), outcome(() => oneByOne(block)));
    }),
    {
      numRuns: 500,
      seed: 4,
      examples: [
        [['{"a":[{"b":1}', '{"c":2}]}', '{"x":1},{"y":2}'], false],
        [['{"a":[{"b":1}', '{"c":2}]}', '{"x":1},null,{"y":2}'], false],
      ],
    },
  );
});
