import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { print, printJson } from "../../cli/output.ts";
import { visible } from "../../cli/visible.ts";
import { inProcess } from "./in_process.ts";

Deno.test("visible() writes control characters as JSON does, and leaves all other text", () => {
  strictEqual(
    visible("\x1b[31mred\x07 \r \x7f \x9b2J \u202egpj\u2066"),
    "\\u001b[31mred\\u0007 \\u000d \\u007f \\u009b2J \\u202egpj\\u2066",
  );
  const plain = "a\tb\né 日本 👍🏽 \u200fעברית";
  strictEqual(visible(plain), plain);
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
