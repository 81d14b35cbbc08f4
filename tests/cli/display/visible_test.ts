import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { EXIT } from "../../../cli/exit.ts";
import { main } from "../../../cli/main.ts";
import { print, printJson, tell } from "../../../cli/display/output.ts";
import { visible } from "../../../cli/display/visible.ts";
import { inProcess } from "../in_process.ts";

Deno.test("visible() writes control characters as JSON does, and leaves all other text", () => {
  strictEqual(
    visible("\x1b[31mred\x07 \r \x7f \x9b2J \u202egpj\u2066"),
    "\\u001b[31mred\\u0007 \\u000d \\u007f \\u009b2J \\u202egpj\\u2066",
  );
  const plain = "a\tb\né 日本 👍🏽 👩\u200d🔬 \u200bעברית";
  strictEqual(visible(plain), plain);
});

Deno.test("visible() writes every character that turns the direction of text or separates lines", () => {
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const codes = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029];
  for (const code of [...codes, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]) {
    strictEqual(
      visible(`a${String.fromCharCode(code)}b`),
      `a\\u${code.toString(16).padStart(4, "0")}b`,
    );
  }
});

Deno.test("everything that is printed is visible, and JSON keeps its value", () => {
  const lines: string[] = [];
  const { log } = console;
  console.log = (text: string) => void lines.push(text);
  try {
    print("\x1b[2J");
    printJson({ text: "\x1b\x9b\x7f" });
  } finally {
    console.log = log;
  }
  strictEqual(lines[0], "\\u001b[2J");
  strictEqual(lines[1], '{\n  "text": "\\u001b\\u009b\\u007f"\n}');
  deepStrictEqual(JSON.parse(lines[1]!), { text: "\x1b\x9b\x7f" });
});

Deno.test("progress and messages are visible", () => {
  let written = "";
  const { writeSync } = Deno.stderr;
  Deno.stderr.writeSync = (bytes) => (written += new TextDecoder().decode(bytes), bytes.length);
  try {
    tell("\x1b[2J");
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  strictEqual(written, "\\u001b[2J\n");
});

Deno.test("the stack of an unexpected error is visible", async () => {
  const lines: string[] = [];
  const { error } = console;
  console.error = (text: unknown) => void lines.push(String(text));
  try {
    const broken = { parseAsync: () => Promise.reject(new TypeError("\x1b[2J \u202e")) };
    strictEqual(await main([], broken as unknown as Parameters<typeof main>[1]), EXIT.failed);
  } finally {
    console.error = error;
  }
  match(lines[0]!, /^TypeError: \\u001b\[2J \\u202e\n +at .*visible_test/);
});

Deno.test("escape codes of a data file reach the terminal neither by rows nor by errors", async () => {
  const dir = await Deno.makeTempDir({ prefix: "visible_" });
  try {
    const file = `${dir}/rows.jsonl`;
    const row = { id: "\x1b[2Jid", prompt: "\x1b]0;title\x07", "a\x1bb": 1, answer: "\x9b31m" };
    const line = JSON.stringify(row);
    await Deno.writeTextFile(file, `${line}\n`);
    const shown = await inProcess(["data", "preview", file, "--home", dir]);
    match(
      shown.out,
      /row_id +\\u001b\[2Jid\n +prompt +\\u001b\]0;title\\u0007\n +answer +\\u009b31m/,
    );
    await Deno.writeTextFile(file, `${line}\n${line}\n`);
    const refused = await inProcess(["data", "preview", file, "--home", dir]);
    match(refused.err, /\\u001b\[2Jid/);
    for (const { out, err } of [shown, refused]) {
      strictEqual(visible(out + err), out + err);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
