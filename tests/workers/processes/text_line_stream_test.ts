import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { TextLineStream } from "../../../workers/processes/text_line_stream.ts";

const linesOf = (chunks: string[]): Promise<string[]> =>
  Array.fromAsync(ReadableStream.from(chunks).pipeThrough(new TextLineStream()));

Deno.test("TextLineStream ends lines at \\n, \\r\\n and \\r, and drops empty ones", async () => {
  deepStrictEqual(await linesOf(["a\nb\r\nc\rd\n\ne"]), ["a", "b", "c", "d", "e"]);
});

Deno.test("TextLineStream gives the last line although nothing ends it", async () => {
  deepStrictEqual(await linesOf(["a\nb"]), ["a", "b"]);
  deepStrictEqual(await linesOf(["a\n"]), ["a"]);
  deepStrictEqual(await linesOf([]), []);
});

Deno.test("TextLineStream gives the same lines wherever the text is cut", async () => {
  const text = fc.array(fc.constantFrom("a", "é", "\n", "\r", "\r\n", " "), { maxLength: 20 });
  await fc.assert(fc.asyncProperty(text, async (pieces) => {
    const whole = pieces.join("");
    deepStrictEqual(await linesOf([...whole]), await linesOf([whole]));
  }));
});
