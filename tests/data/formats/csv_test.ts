import { deepStrictEqual, match, rejects } from "node:assert/strict";
import { csv } from "../../../data/formats/csv.ts";
import { brokenText } from "../../../data/utf8_text.ts";

/** Rows of a text that arrives in pieces of `size` bytes. */
async function rowsOf(text: string | Uint8Array, size = 3): Promise<Record<string, unknown>[]> {
  const whole = typeof text === "string" ? new TextEncoder().encode(text) : text;
  async function* bytes() {
    for (let at = 0; at < whole.length; at += size) yield await whole.slice(at, at + size);
  }
  return (await Array.fromAsync(csv.rows!({ path: "rows.csv", named: "rows.csv", bytes }))).flat();
}

Deno.test("csv reads a byte-order mark, quoted commas, quotes and newlines", async () => {
  const text = '\uFEFFprompt,answer\r\n"a, ""b""\nc",é\r\n\r\nd,4\r\n';
  deepStrictEqual(await rowsOf(text), [
    { prompt: 'a, "b"\nc', answer: "é" },
    { prompt: "d", answer: "4" },
  ]);
});

Deno.test("csv tells an empty cell from an empty text, and keeps numbers as texts", async () => {
  deepStrictEqual(await rowsOf('a,b,c\n,"",007\n'), [{ a: null, b: "", c: "007" }]);
});

Deno.test("csv reads UTF-8 however it is cut, and marks what is not UTF-8 in its cell", async () => {
  for (const size of [1, 2, 3, 64]) {
    deepStrictEqual(await rowsOf('\uFEFF"ä",b\n😀é,x\n', size), [{ "ä": "😀é", b: "x" }]);
    const latin1 = Uint8Array.from("a,b\nx,caf\xe9\n", (one) => one.charCodeAt(0));
    const [row] = await rowsOf(latin1, size);
    deepStrictEqual(brokenText(row)?.path, ["b"]);
    deepStrictEqual(await rowsOf(utf16("\uFEFFa,b\né,x\n"), size + 2), [{ a: "é", b: "x" }]);
  }
});

function utf16(text: string): Uint8Array {
  return new Uint8Array(Uint16Array.from(text, (one) => one.charCodeAt(0)).buffer);
}

const BROKEN: [string, string, RegExp][] = [
  ["a row with a cell too few", "a,b\n1,2\n3\n", /^rows\.csv:3: the file is not CSV \(.*got 1/],
  ["a quote that never ends", 'a,b\n1,"2\n3,4\n', /^rows\.csv:\d: the file is not CSV \(Quote Not/],
  ["two columns of one name", "a,b,a\n1,2,3\n", /^rows\.csv:1: two columns are called 'a'/],
];
for (const [name, text, says] of BROKEN) {
  Deno.test(`csv refuses ${name}, with the line`, async () => {
    await rejects(rowsOf(text), (error: Error) => {
      match(error.message, says);
      return true;
    });
  });
}
