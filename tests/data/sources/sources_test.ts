import { gzipSync } from "node:zlib";
import { deepStrictEqual, match, notStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { DataError, drawRows, loadRows as opened, type SourceInput } from "../../../data/mod.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();
const loadRows = (
  sources: SourceInput[],
  options: { needs?: "completion" | "every_turn" | "answer" } = {},
) => opened(sources, { home, ...options });

async function file(text: string | Uint8Array): Promise<string> {
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  await Deno.writeFile(path, typeof text === "string" ? new TextEncoder().encode(text) : text);
  return path;
}

const lines = (...rows: unknown[]) => rows.map((row) => JSON.stringify(row)).join("\n") + "\n";

Deno.test("loadRows() gives a row without an id the same id whatever the order of its fields", async () => {
  const one = await loadRows([{ path: await file(lines({ prompt: "p", answer: "a" })) }]);
  const other = await loadRows([{ path: await file(lines({ answer: "a", prompt: "p" })) }]);
  const [[a], [b]] = [await one.rows([0]), await other.rows([0])];
  strictEqual(a!.row_id, b!.row_id);
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
  const [first, second] = await table.rows([0, 1]);
  strictEqual(first!.prompt, "é");
  strictEqual(second!.prompt, long);
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

/** A chat whose last turn calls a function. */
const calling = (call: unknown) => ({
  messages: [{ role: "user", content: "a" }, {
    role: "assistant",
    content: null,
    tool_calls: [call],
  }],
});
const described = (description: string) => [
  { type: "function", function: { name: "f", description, parameters: {} } },
];

/** Where a row has a text; what is JSON text has it as an escape. */
const HALVES: { at: string; row: (half: string) => Record<string, unknown> }[] = [
  { at: "id", row: (id) => ({ id }) },
  { at: "answer", row: (answer) => ({ answer }) },
  { at: "tools.0.function.description", row: (half) => ({ tools: described(half) }) },
  {
    at: "tools.0.function.description",
    row: (half) => ({
      prompt: [{ role: "user", content: "a" }],
      tools: JSON.stringify(described(half)),
    }),
  },
  {
    at: "messages.1.tool_calls.0.function.arguments.a",
    row: (a) => ({ prompt: null, ...calling({ function: { name: "f", arguments: { a } } }) }),
  },
  {
    at: "messages.1.tool_calls.0.function.arguments.a",
    row: (a) => ({
      prompt: null,
      ...calling({ function: { name: "f", arguments: JSON.stringify({ a }) } }),
    }),
  },
  {
    at: "messages.1.tool_calls.0.arguments.a",
    row: (a) => ({ prompt: null, ...calling({ name: "f", arguments: JSON.stringify({ a }) }) }),
  },
];

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
  { name: "not an object", text: "1\n", line: 1, says: /:1: the line is JSON but not an object/ },
  {
    name: "an array",
    text: '[\n{"prompt":"a"}]',
    line: 1,
    says: /:1: the line begins a JSON array; /,
  },
  {
    name: "not UTF-8",
    text: Uint8Array.from(
      '{"prompt":"a"}\n{"prompt":"a","note":["caf\xe9"]}\n',
      (one) => one.charCodeAt(0),
    ),
    line: 2,
    says: /:2 note\.0: the text has bytes that are not UTF-8/,
  },
  {
    name: "half a character",
    text: '{"prompt":"half \\ud83d emoji"}\n',
    line: 1,
    says: /:1 prompt: the text has half of a surrogate pair/,
  },
  ...HALVES.map(({ at, row }) => ({
    name: `half a character in ${at}`,
    text: JSON.stringify({ prompt: "a", ...row("half \ud83d") }),
    line: 1,
    says: new RegExp(`:1 ${RegExp.escape(at)}: the text has half of a surrogate pair`),
  })),
  {
    name: "no prompt",
    text: lines({ words: "x" }),
    line: 1,
    says: /has no 'prompt', 'messages' or 'question' \(it has 'words'\)/,
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
    says: /:2: the row id '1' already belongs to line 1/,
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
  deepStrictEqual((await table.rows([0, 1])).map(({ row_id }) => row_id), ["a/0", "b/0"]);
});

Deno.test("loadRows() leaves a second row of the same id out under duplicates: skip", async () => {
  const table = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "a" })),
    duplicates: "skip",
  }]);
  strictEqual(table.size, 1);
});

Deno.test("loadRows() refuses what is missing, empty or without rows", async () => {
  await rejects(
    loadRows([{ path: "/nowhere/x.jsonl" }]),
    /^DataError: \/nowhere\/x\.jsonl: Cannot read it: there is no such file/,
  );
  await rejects(loadRows([{ path: await Deno.makeTempDir() }]), /the directory has no data file/);
  await rejects(loadRows([{ path: await file("\n") }]), /it contains no rows/);
});

Deno.test("drawRows() numbers draws on from the place asked for", async () => {
  const table = await loadRows([{
    path: await file(lines({ prompt: "a" }, { prompt: "b" }, { prompt: "c" })),
  }]);
  const all = await drawRows(table, { seed: 4, from: 0, count: 7 });
  deepStrictEqual(await drawRows(table, { seed: 4, from: 3, count: 4 }), all.slice(3));
  deepStrictEqual(all.map(({ draw }) => draw), [0, 1, 2, 3, 4, 5, 6]);
});

Deno.test("loadRows() gives JSON lines these digests", async () => {
  const a = await file(
    `\uFEFF{"prompt":"é","id":1}\r\n\n{"prompt":"b","id":2}\n{"prompt":"c","id":3}`,
  );
  const b = await file(`{"question":"q","answer":"#### 4"}\n`.repeat(2));
  strictEqual(
    (await loadRows([{ path: a }])).digest,
    "efc97476eb5db8d2ec53460fd4b759c6f227d8ce666465b6b567835e926df209",
  );
  const read = { path: a, name: "x", limit: 2, fields: { id: "id" }, system: "s" };
  strictEqual(
    (await loadRows([read, { path: b, duplicates: "skip" }])).digest,
    "bf63bade3e3fbb719d723622c58ae343631c62b7829b4e1fa49e35d9c4a8b377",
  );
});

Deno.test("loadRows() gives lines one digest, compressed or not and whatever ends the last", async () => {
  const text = lines({ id: 1, prompt: "a" }, { id: 2, prompt: "b" });
  const unended = await file(text.trimEnd());
  const [plain, packed] = [await file(text), `${await Deno.makeTempFile()}.jsonl.gz`];
  await Deno.writeFile(packed, gzipSync(new TextEncoder().encode(text)));
  for (const limit of [undefined, 1]) {
    const [a, b] = [
      await loadRows([{ path: plain, limit }]),
      await loadRows([{ path: packed, limit }]),
    ];
    strictEqual(b.digest, a.digest);
    strictEqual((await loadRows([{ path: unended, limit }])).digest, a.digest);
  }
});

Deno.test("loadRows() reads messages for the last turn or for all, with two digests", async () => {
  const turn = (role: string, content: string) => ({ role, content });
  const messages = [
    turn("user", "1"),
    turn("assistant", "one"),
    turn("user", "2"),
    turn("assistant", "two"),
  ];
  const path = await file(lines({ id: 1, messages }));
  const open = async (needs?: "completion" | "every_turn") => {
    const table = await loadRows([{ path }], { needs });
    return { digest: table.digest, completion: (await table.rows([0]))[0]!.completion };
  };
  const [any, last, every] = [await open(), await open("completion"), await open("every_turn")];
  deepStrictEqual(last, any);
  deepStrictEqual([last.completion, every.completion], ["two", messages.slice(1)]);
  notStrictEqual(every.digest, last.digest);
});

Deno.test("loadRows() has the digits of a JSON line's numbers in answers, ids, templates and columns", async () => {
  const path = await file([
    '{"id":1.10,"question":"q","answer":1.10,"n":[2.50]}',
    '{"id":1.1,"question":"q","answer":3.14159265358979323846,"n":[1e3]}',
    '{"id":2,"question":"q","reward_model":{"ground_truth":1.0},"n":[0.1234567890123456789]}',
    '{"id":3,"question":"q","answer":1e3,"n":[7]}',
  ].join("\n"));
  const read = async (fields: Record<string, string>) =>
    await (await loadRows([{ path, fields }])).rows([0, 1, 2, 3]);
  const rows = await read({});
  deepStrictEqual(rows.map(({ row_id, answer }) => [row_id, answer]), [
    ["1.10", "1.10"],
    ["1.1", "3.14159265358979323846"],
    ["2", "1.0"],
    ["3", "1000"],
  ]);
  deepStrictEqual(rows.map(({ columns }) => columns.n), [[2.5], [1000], ["0.1234567890123456789"], [
    7,
  ]]);
  deepStrictEqual((await read({ prompt: "{n.0} {n|letters}" })).map(({ prompt }) => prompt), [
    "2.50 A. 2.50",
    "1000 A. 1000",
    "0.1234567890123456789 A. 0.1234567890123456789",
    "7 A. 7",
  ]);
});

const GZIPPED = "rows.jsonl.gz";

Deno.test("loadRows() makes an index once, and again if it is damaged", async () => {
  const home = await Deno.makeTempDir({ prefix: "index_" });
  try {
    const text = new TextEncoder().encode(lines({ id: 1, prompt: "a" }, { id: 2, prompt: "b" }));
    await Deno.writeFile(`${home}/${GZIPPED}`, gzipSync(text));
    const notices: string[] = [];
    const open = async () => {
      const table = await opened([{ path: `${home}/${GZIPPED}` }], {
        home: home,
        say: (line) => void notices.push(line),
      });
      const ids = (await table.rows([1, 0])).map(({ row_id }) => row_id);
      return { ids, digest: table.digest, files: table.files };
    };
    const index = await open();
    deepStrictEqual(index.ids, ["2", "1"]);
    const cached = [...Deno.readDirSync(`${home}/cache/rows`)].map(({ name }) => name).sort();
    strictEqual(cached.length, 2);
    const states = () =>
      cached.map((name) => Deno.statSync(`${home}/cache/rows/${name}`).mtime!.getTime());
    const before = states();
    deepStrictEqual([await open(), states(), notices], [index, before, []]);
    for (const name of cached) {
      for (const damage of ["", "garbage\n".repeat(9)]) {
        await Deno.writeTextFile(`${home}/cache/rows/${name}`, damage);
        deepStrictEqual(await open(), index);
        match(notices.pop()!, /\.index or what belongs to it is damaged: it is made again$/);
      }
      await Deno.remove(`${home}/cache/rows/${name}`);
      deepStrictEqual(await open(), index);
    }
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

Deno.test("loadRows() counts the rows of each source that are left", async () => {
  const a = await file(lines({ id: 1, prompt: "p" }, { id: 1, prompt: "q" }));
  const b = await file(lines({ id: 2, prompt: "p" }, { id: 3, prompt: "q" }));
  const { sources } = await loadRows([{ path: a, duplicates: "skip" }, { path: b }]);
  deepStrictEqual(sources, [1, 2]);
});

Deno.test("loadRows() keeps the digits of large integers: in ids, answers and columns", async () => {
  const line = (last: number) =>
    `{"id":900719925474099${last},"prompt":"p","answer":900719925474099${last},"code":123456789012345678${last}}\n`;
  const table = await loadRows([{ path: await file(line(2) + line(3)) }]);
  const rows = await table.rows([0, 1]);
  deepStrictEqual(
    rows.map(({ row_id, answer, columns: { code } }) => [row_id, answer, code]),
    [2, 3].map((last) => [
      `900719925474099${last}`,
      `900719925474099${last}`,
      `123456789012345678${last}`,
    ]),
  );
});
