import fc from "fast-check";
import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { normalise, shapeOf, SourceConfig } from "../../../data/mod.ts";

const { path: _, ...PLAIN } = SourceConfig.parse({ path: "rows.jsonl" });
const answerOf = (answer: string) => {
  const row = normalise({ question: "q", answer }, PLAIN);
  return { answer: row.answer, completion: row.completion };
};

/** The rule in one expression: right, but quadratic in the white space of a line. */
const RULE = /####\s*(\S[^\n]*?)\s*$/;

Deno.test("normalise() reads what ends an answer after ####, and takes the whole text for the completion", () => {
  deepStrictEqual(answerOf("2+2\n#### 1,042 \n"), {
    answer: "1,042",
    completion: "2+2\n#### 1,042 \n",
  });
  deepStrictEqual(answerOf("no mark"), { answer: "no mark", completion: undefined });
});

Deno.test("normalise() finds the same end of an answer as the rule, whatever stands in the text", () => {
  const pieces = fc.constantFrom("#", "##", "####", " ", "\n", "\r", "\u2028", "\t", "1", "a");
  const text = fc.array(pieces, { maxLength: 14 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, (answer) => {
      const ending = answer.match(RULE)?.[1];
      const found = answerOf(answer);
      strictEqual(found.answer, ending ?? answer);
      strictEqual(found.completion, ending === undefined ? undefined : answer);
    }),
    { numRuns: 20_000, seed: 7 },
  );
});

Deno.test("normalise() takes answers of any length: what is quadratic would not end with eight million characters", () => {
  const size = 8_000_000;
  for (const run of ["#", "####", "#### ", "#### a", "a ", " ", "\n", "####\n", "0"]) {
    const long = run.repeat(size / run.length);
    for (const answer of [long, `#### ${long}`, `#### a${long}a`, `${long}\n#### 4`]) {
      answerOf(answer);
    }
  }
});

const source = (options = {}) => SourceConfig.parse({ path: "unused.jsonl", ...options });

Deno.test("normalise() reads GSM8K: the number after #### is the answer, the whole text the completion", () => {
  const columns = { question: "How many?", answer: "2+2 = <<2+2=4>>4\n#### 1,004" };
  const row = normalise(columns, source());
  strictEqual(row.prompt, "How many?");
  strictEqual(row.answer, "1,004");
  strictEqual(row.completion, columns.answer);
  deepStrictEqual(row.columns, columns);
  match(row.row_id, /^[0-9a-f]{20}$/);
});

Deno.test("normalise() takes the last assistant turn of messages as the completion, and keeps other keys of a message", () => {
  const messages = [
    { role: "user", content: "a", name: "x" },
    { role: "assistant", content: "b" },
    { role: "user", content: "c" },
    { role: "assistant", content: "d" },
  ];
  const row = normalise({ id: 7, messages }, source());
  strictEqual(row.row_id, "7");
  strictEqual(row.completion, "d");
  deepStrictEqual(row.prompt, [
    { role: "user", content: "a", more: '{"name":"x"}' },
    { role: "assistant", content: "b" },
    { role: "user", content: "c" },
  ]);
});

Deno.test("normalise() reads no text answer where it is an object or a list; columns keep it", () => {
  const ground_truth = { target: 9, numbers: [2, 3, 4] };
  const verl = normalise({ prompt: "p", reward_model: { ground_truth } }, source());
  strictEqual("answer" in verl, false);
  deepStrictEqual(verl.columns.reward_model, { ground_truth });
  strictEqual("answer" in normalise({ question: "q", answer: ["a", "b"] }, source()), false);
  const named = source({ fields: { prompt: "q", answer: "all" } });
  strictEqual("answer" in normalise({ q: "p", all: ["a"] }, named), false);
});

Deno.test("normalise() writes a number as digits, whatever its size", () => {
  const answer = (value: unknown) => normalise({ prompt: "p", answer: value }, source()).answer;
  deepStrictEqual([1e21, 1e-7, 7, 0.5, true].map(answer), [
    "1000000000000000000000",
    "0.0000001",
    "7",
    "0.5",
    "true",
  ]);
});

Deno.test("normalise() hands a row's tools to chats, wherever frameworks put them", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const prompt = [{ role: "user", content: "a" }];
  const request = { input: prompt, tools: [{ type: "function", name: "f" }] };
  for (
    const columns of [
      { prompt, tools },
      { prompt, tool_defs: JSON.stringify(tools) },
      { responses_create_params: request },
    ]
  ) {
    strictEqual(normalise(columns, source()).tools, JSON.stringify(tools));
  }
  const named = source({ fields: { tools: "functions" } });
  const both = normalise({ prompt, tools: "a hammer", functions: tools }, named);
  strictEqual(both.tools, JSON.stringify(tools));
  // Text goes through no template; a row without tools has the bytes that it always had.
  strictEqual("tools" in normalise({ prompt: "a", tools: "a hammer" }, source()), false);
  strictEqual("tools" in normalise({ prompt, tools: [] }, source()), false);
});

Deno.test("normalise() keeps prompt, completion and answer of plain and chat rows", () => {
  const plain = normalise(
    { prompt: "p", completion: "c", answer: 27.5, extra_info: { index: 3 } },
    source(),
  );
  deepStrictEqual([plain.prompt, plain.completion, plain.answer, plain.row_id], [
    "p",
    "c",
    "27.5",
    "3",
  ]);
  const prompt = [{ role: "user", content: "p" }];
  const chat = normalise({ prompt, completion: [{ role: "assistant", content: "c" }] }, source());
  deepStrictEqual([chat.prompt, chat.completion], [prompt, "c"]);
});

Deno.test("normalise() reads configured and nested fields", () => {
  const row = normalise(
    { q: { text: "?" }, reward_model: { ground_truth: "4" }, key: "k" },
    source({ fields: { prompt: "q.text", id: "key" }, name: "set" }),
  );
  deepStrictEqual([row.prompt, row.answer, row.row_id], ["?", "4", "set/k"]);
});

Deno.test("normalise() dresses a text prompt as a chat with system message and instruction", () => {
  const row = normalise(
    { prompt: "2+2?" },
    source({ prompt_as: "chat", system: "Be brief.", instruction: "End with ####." }),
  );
  deepStrictEqual(row.prompt, [
    { role: "system", content: "Be brief." },
    { role: "user", content: "2+2?\nEnd with ####." },
  ]);
});

Deno.test("normalise() leaves a row its own system message", () => {
  const question = { role: "user", content: "2+2?" };
  for (const role of ["system", "developer"]) {
    const conversation = [{ role, content: "Be long." }, question];
    deepStrictEqual(
      normalise({ prompt: conversation }, source({ system: "Be brief." })).prompt,
      conversation,
    );
    const { prompt } = normalise(
      { messages: [...conversation, { role: "assistant", content: "4" }] },
      source({ system: "Be brief." }),
    );
    deepStrictEqual(prompt, conversation);
  }
  deepStrictEqual(normalise({ prompt: [question] }, source({ system: "Be brief." })).prompt, [
    { role: "system", content: "Be brief." },
    question,
  ]);
});

Deno.test("normalise() reads a row alike whether or not its shape was found before", () => {
  const fields = { ...source().fields, prompt: "q" };
  const rows = [
    { prompt: "p", chosen: "a", rejected: "b" },
    { question: "q", answer: "#### 1" },
    { messages: [{ role: "user", content: "u" }] },
    { q: "own", prompt: "other" },
  ];
  for (const columns of rows) {
    const one = "q" in columns ? source({ fields }) : source();
    const found = shapeOf(columns, one.fields);
    deepStrictEqual(normalise(columns, one, { found }), normalise(columns, one));
  }
});

const turn = (role: string, content: string) => ({ role, content });
const CHAT = [
  turn("system", "s"),
  turn("user", "1"),
  turn("assistant", "one"),
  turn("user", "2"),
  turn("assistant", "two"),
];

Deno.test("normalise() has every assistant turn in the completion under every_turn", () => {
  const shown = (messages: unknown, every_turn = true) => {
    const { prompt, completion } = normalise({ messages }, PLAIN, { every_turn });
    return { prompt, completion };
  };
  deepStrictEqual(shown(CHAT), { prompt: CHAT.slice(0, 2), completion: CHAT.slice(2) });
  deepStrictEqual(shown(CHAT, false), { prompt: CHAT.slice(0, 4), completion: "two" });
  // One turn is its text, as before; a question at the end teaches nothing.
  deepStrictEqual(shown(CHAT.slice(0, 3)), { prompt: CHAT.slice(0, 2), completion: "one" });
  deepStrictEqual(shown([...CHAT, turn("user", "3")]), shown(CHAT));
  // A greeting answers nothing: it is asked with, not taught.
  const greeted = [turn("assistant", "hi"), ...CHAT.slice(1, 3)];
  deepStrictEqual(shown(greeted), { prompt: greeted.slice(0, 2), completion: "one" });
  deepStrictEqual(shown(CHAT.slice(0, 2)), { prompt: CHAT.slice(0, 2), completion: undefined });
  throws(() => shown([turn("assistant", "hi"), turn("user", "1")]), /answers no message/);
  throws(() => shown([turn("assistant", "hi")]), /the only message is the assistant's/);
});

Deno.test("normalise() makes a prompt by the template of the source, and reads the rest as before", () => {
  const mmlu = { question: "Which is even?", choices: ["1", "2"], answer: 1 };
  const fields = { prompt: "{question}\n{choices|letters}", answer: "answer" };
  const row = normalise(mmlu, source({ fields, prompt_as: "chat", instruction: "Answer." }));
  deepStrictEqual(
    [row.prompt, row.answer, row.columns],
    [[{ role: "user", content: "Which is even?\nA. 1\nB. 2\nAnswer." }], "1", mmlu],
  );
  const pair = { body: "Say", end: "yes.", chosen: "yes", rejected: "no" };
  const preferred = normalise(pair, source({ fields: { prompt: "{body} {end}" } }), {
    preference: true,
  });
  deepStrictEqual(
    [preferred.prompt, preferred.completion, preferred.rejected],
    ["Say yes.", "yes", "no"],
  );
});
