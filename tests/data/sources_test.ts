import { deepStrictEqual, match, notStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { DataError, drawRows, loadRows } from "../../data/mod.ts";

async function file(text: string | Uint8Array): Promise<string> {
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  await Deno.writeFile(path, typeof text === "string" ? new TextEncoder().encode(text) : text);
  return path;
}

const lines = (...rows: unknown[]) => rows.map((row) => JSON.stringify(row)).join("\n") + "\n";

Deno.test("loadRows() gives a row without an id the same id whatever the order of its fields", async () => {
  const one = await loadRows([{ path: await file(lines({ prompt: "p", answer: "a" })) }]);
  const other = await loadRows([{ path: await file(lines({ answer: "a", prompt: "p" })) }]);
  strictEqual(one.row(0).row_id, other.row(0).row_id);
  notStrictEqual(one.digest, other.digest);
});

Deno.test("loadRows() reads lines across read chunks, CRLF, a byte-order mark, blank lines and no last newline", async () => {
  const long = "x".repeat(200_000);
  const table = await loadRows([{
    path: await file(
      `\uFEFF${JSON.stringify({ prompt: "é" })}\r\n\r\n${JSON.stringify({ prompt: long })}`,
    ),
  }]);
  strictEqual(table.size, 2);
  strictEqual(table.row(0).prompt, "é");
  strictEqual(table.row(1).prompt, long);
});

Deno.test("loadRows() stops at limit, and its digest then ignores what follows", async () => {
  const short = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "b" })),
    limit: 1,
  }]);
  const longer = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "c" })),
    limit: 1,
  }]);
  strictEqual(short.size, 1);
  strictEqual(short.digest, longer.digest);
});

const BROKEN: {
  name: string;
  text: string | Uint8Array;
  needs?: "completion" | "answer";
  line: number;
  says: RegExp;
}[] = [
  {
    name: "no JSON",
    text: '{"prompt": "a"}\n{"prompt": \n',
    line: 2,
    says: /:2: the line is not JSON \(/,
  },
  { name: "not an object", text: "[1]\n", line: 1, says: /:1: the line is JSON but not an object/ },
  { name: "not UTF-8", text: new Uint8Array([0x22, 0xff, 0x22, 10]), line: 1, says: /not UTF-8/ },
  {
    name: "no prompt",
    text: lines({ text: "x" }),
    line: 1,
    says: /has no 'prompt', 'messages' or 'question' \(it has 'text'\)/,
  },
  {
    name: "an empty prompt",
    text: lines({ prompt: "" }),
    line: 1,
    says: /:1 prompt: the prompt is empty/,
  },
  {
    name: "a prompt of a wrong type",
    text: lines({ prompt: 3 }),
    line: 1,
    says: /prompt: expected text or a list of .* got number 3/,
  },
  {
    name: "a message without content",
    text: lines({ prompt: "a" }, {
      messages: [{ role: "user", content: "a" }, { role: "assistant" }],
    }),
    line: 2,
    says: /:2 messages\.1\.content: expected text, got nothing/,
  },
  {
    name: "no completion",
    text: lines({ prompt: "a" }),
    needs: "completion",
    line: 1,
    says: /completion: expected text, got nothing; add it/,
  },
  {
    name: "a duplicate id",
    text: lines({ prompt: "a", id: 1 }, { prompt: "b", id: 1 }),
    line: 2,
    says: /:2: the row id '1' is that of line 1/,
  },
];

for (const { name, text, needs, line, says } of BROKEN) {
  Deno.test(`loadRows() refuses ${name} with file, line and field`, async () => {
    const path = await file(text);
    await rejects(loadRows([{ path }], { needs }), (error) => {
      strictEqual(error instanceof DataError, true, String(error));
      const { message, facts, code } = error as DataError;
      match(message, says);
      deepStrictEqual([facts.file, facts.line, code], [path, line, "bad_data"]);
      return true;
    });
  });
}

Deno.test("loadRows() says how to mend ids that collide between files, and a name mends them", async () => {
  const [a, b] = [
    await file(lines({ prompt: "a", id: 0 })),
    await file(lines({ prompt: "b", id: 0 })),
  ];
  await rejects(loadRows([{ path: a }, { path: b }]), /give each file a `name`/);
  const table = await loadRows([{ path: a, name: "a" }, { path: b, name: "b" }]);
  deepStrictEqual([table.row(0).row_id, table.row(1).row_id], ["a/0", "b/0"]);
});

Deno.test("loadRows() leaves a second row of the same id out under duplicates: skip", async () => {
  const table = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "a" })),
    duplicates: "skip",
  }]);
  strictEqual(table.size, 1);
});

Deno.test("loadRows() refuses a missing file, a directory and a file without rows", async () => {
  await rejects(
    loadRows([{ path: "/nowhere/x.jsonl" }]),
    /^DataError: \/nowhere\/x\.jsonl: Cannot read it: there is no such file/,
  );
  await rejects(loadRows([{ path: await Deno.makeTempDir() }]), /it is a directory/);
  await rejects(loadRows([{ path: await file("\n") }]), /there is no row in it/);
});

Deno.test("drawRows() numbers draws on from the place asked for", async () => {
  const table = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "b" }, { prompt: "c" })),
  }]);
  const all = drawRows(table, { seed: 4, from: 0, count: 7 });
  deepStrictEqual(drawRows(table, { seed: 4, from: 3, count: 4 }), all.slice(3));
  deepStrictEqual(all.map(({ draw }) => draw), [0, 1, 2, 3, 4, 5, 6]);
});
