import { deepStrictEqual, match, rejects, strictEqual, throws } from "node:assert/strict";
import { DataError, loadRows, normalise, pairOf, SourceConfig } from "../../data/mod.ts";
import { rowHome } from "./row_home.ts";

type Fields = Record<string, string>;
const pair = (columns: Record<string, unknown>, fields: Fields = {}) =>
  pairOf(normalise(columns, SourceConfig.parse({ path: "unused", fields }), { preference: true }));
const sides = (columns: Record<string, unknown>, fields?: Fields) => {
  const { prompt, chosen, rejected } = pair(columns, fields);
  return { prompt, chosen, rejected };
};
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

Deno.test("a preference of texts keeps its prompt, and its margin where it has one", () => {
  const row = { id: 4, prompt: "2+2?", chosen: "4", rejected: "5" };
  deepStrictEqual(pair(row), {
    row_id: "4",
    prompt: "2+2?",
    chosen: "4",
    rejected: "5",
    margin: 0,
  });
  strictEqual(pair({ ...row, margin: 0.5 }).margin, 0.5);
});

Deno.test("completions of one assistant message are its text; longer ones stay messages", () => {
  const prompt = [user("a")];
  const several = [assistant("b"), user("c"), assistant("d")];
  deepStrictEqual(sides({ prompt, chosen: [assistant("b")], rejected: several }), {
    prompt,
    chosen: "b",
    rejected: several,
  });
});

Deno.test("a pair keeps its tools and what its sides call", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const prompt = [{ role: "user", content: "q" }];
  const calling = (name: string) => [
    { role: "assistant", content: null, tool_calls: [{ function: { name, arguments: {} } }] },
  ];
  const pair = pairOf(
    normalise(
      { tools, chosen: [...prompt, ...calling("f")], rejected: [...prompt, ...calling("g")] },
      SourceConfig.parse({ path: "unused" }),
      { preference: true },
    ),
  );
  strictEqual(pair.tools, JSON.stringify(tools));
  const sides = ["f", "g"].map((name) => {
    const { role, content, ...more } = calling(name)[0]!;
    return [{ role, content, more: JSON.stringify(more) }];
  });
  deepStrictEqual([pair.prompt, pair.chosen, pair.rejected], [prompt, ...sides]);
});

Deno.test("configured fields are read, nested ones too", () => {
  const row = { q: "a", pair: { good: "b", bad: "c" }, lead: 2 };
  const fields = { prompt: "q", chosen: "pair.good", rejected: "pair.bad", margin: "lead" };
  deepStrictEqual(sides(row, fields), { prompt: "a", chosen: "b", rejected: "c" });
  strictEqual(pair(row, fields).margin, 2);
});

// TRL 1.16, `extract_prompt`, on the same texts.
const TEXTS: { name: string; chosen: string; rejected: string; prompt: string }[] = [
  {
    name: "up to the first difference",
    chosen: "sky is blue",
    rejected: "sky is green",
    prompt: "sky is",
  },
  { name: "in the middle of a word", chosen: "A: right", rejected: "A: rigid", prompt: "A: rig" },
  { name: "never all of the shorter text", chosen: "ab", rejected: "abc", prompt: "a" },
  {
    name: "by characters, not halves of them",
    chosen: "x\u{1F600}",
    rejected: "x\u{1F601}",
    prompt: "x",
  },
];
for (const { name, chosen, rejected, prompt } of TEXTS) {
  Deno.test(`the prompt of two texts without one is what they share: ${name}`, () => {
    const expected = {
      prompt,
      chosen: chosen.slice(prompt.length),
      rejected: rejected.slice(prompt.length),
    };
    deepStrictEqual(sides({ chosen, rejected }), expected);
    const turned = { prompt, chosen: expected.rejected, rejected: expected.chosen };
    deepStrictEqual(sides({ chosen: rejected, rejected: chosen }), turned);
  });
}

Deno.test("the prompt of two conversations without one is the messages that they share, also beside a text prompt", () => {
  const shared = [{ role: "system", content: "s" }, user("a"), assistant("b"), user("c")];
  const row = { chosen: [...shared, assistant("d")], rejected: [...shared, assistant("e")] };
  const expected = { prompt: shared, chosen: "d", rejected: "e" };
  deepStrictEqual(sides(row), expected);
  deepStrictEqual(sides({ ...row, prompt: "c" }), expected);
});

const lines = (...rows: unknown[]) => rows.map((row) => JSON.stringify(row)).join("\n") + "\n";
const GOOD = { prompt: "a", chosen: "b", rejected: "c" };
const BROKEN: { name: string; row: unknown; says: RegExp }[] = [
  {
    name: "no rejected",
    row: { prompt: "a", chosen: "b", label: true },
    says:
      /:2 rejected: the row has no 'rejected' \(it has 'prompt', 'chosen', 'label'\); .* `fields: \{ chosen: NAME.*; `algorithm: kto` learns from completions with a label/,
  },
  {
    name: "nothing preferred",
    row: { ...GOOD, rejected: "b" },
    says: /:2 rejected: is the same as 'chosen', so nothing is preferred; remove the row/,
  },
  {
    name: "nothing preferred, once as text and once as a message",
    row: { ...GOOD, rejected: [assistant("b")] },
    says: /:2 rejected: is the same as 'chosen'/,
  },
  {
    name: "no prompt in texts",
    row: { chosen: "b", rejected: "c" },
    says:
      /:2 prompt: missing, and 'chosen' and 'rejected' start with different texts; add the prompt/,
  },
  {
    name: "no prompt in messages",
    row: { chosen: [user("b")], rejected: [user("c")] },
    says: /:2 prompt: missing, and 'chosen' and 'rejected' start with different messages/,
  },
  {
    name: "no prompt, text beside messages",
    row: { chosen: "b", rejected: [user("c")] },
    says:
      /:2 prompt: missing, and one of 'chosen' and 'rejected' is text and the other is messages/,
  },
  {
    name: "sides that repeat the prompt",
    row: {
      prompt: [user("a")],
      chosen: [user("a"), assistant("b")],
      rejected: [user("a"), assistant("c")],
    },
    says:
      /:2 chosen\.0\.role: the message after the prompt must be the assistant's, .* of 'user'; .* leave `prompt` out/,
  },
  {
    name: "a margin that is no number",
    row: { ...GOOD, margin: "1" },
    says: /:2 margin: expected a number, got the te/,
  },
  {
    name: "a side that is no text",
    row: { ...GOOD, chosen: 3 },
    says: /:2 chosen: expected text or a list of/,
  },
];
for (const { name, row, says } of BROKEN) {
  Deno.test(`loadRows() of preferences refuses ${name}, with file, line, field and how to mend it`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".jsonl" });
    await Deno.writeTextFile(path, lines(GOOD, row));
    await rejects(
      loadRows([{ path }], { home: await rowHome(), needs: "preference" }),
      (error: DataError) => {
        match(error.message, says);
        return error instanceof DataError;
      },
    );
  });
}

Deno.test("pairOf() refuses a row that was read as something else", () => {
  throws(
    () => pairOf(normalise({ prompt: "a" }, SourceConfig.parse({ path: "x" }))),
    /was not read as a preference/,
  );
});
