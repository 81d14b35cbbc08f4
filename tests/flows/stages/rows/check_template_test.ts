import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { type Row, tableOf } from "../../../../data/mod.ts";
import { online } from "../../../../flows/online.ts";
import { shapeOf } from "../../../../flows/stages/rows/check_template.ts";
import { FakeTrainer } from "../../../../testing/mod.ts";
import { execute, onlineConfig, stores } from "../../fixtures.ts";

const TOOLS = '[{"type":"function","function":{"name":"f"}}]';
const userMessage = (content: string, more?: object) => ({
  role: "user",
  content,
  ...(more && { more: JSON.stringify(more) }),
});
const row = (row_id: string, rest: Partial<Row>): Row => ({
  row_id,
  prompt: [userMessage(row_id)],
  answer: "1",
  columns: {},
  ...rest,
});

/** One text, two messages of one shape, and one with tools. */
const ROWS = [
  row("text", { prompt: "x" }),
  row("first", {}),
  row("same", {}),
  row("tools", { tools: TOOLS }),
];

async function ran(refuses: string, { rows = ROWS } = {}) {
  const home = await stores();
  const trainer = new FakeTrainer({ artifacts: home.artifacts, refuses, tokens_max: 1 });
  const table = Object.assign(tableOf(rows, "rows"), {
    placeOf: (place: number) => Promise.resolve({ file: "t.jsonl", line: place + 1 }),
  });
  const config = onlineConfig(home.model, {
    data: { train: [{ path: "t" }], on_long_prompt: "unchecked" },
  });
  const { outcome, samplers } = await execute(online, config, {
    ...home,
    trainer,
    rows: { train: table },
  });
  const measured = trainer.calls.filter(({ op }) => op === "measure_rows").length;
  const generated = samplers.flatMap(({ calls }) => calls).filter(({ op }) => op === "generate");
  const message = outcome.status === "failed" ? outcome.error.message : outcome.status;
  return { message, measured, generated: generated.length };
}

Deno.test("unchecked lengths leave the template checked: a refused shape is named before anything is generated", async () => {
  const { message, generated } = await ran("tools");
  match(message, /: Cannot use row 'tools' \(t\.jsonl:4\): message 2 tool_calls: nothing/);
  strictEqual(generated, 0);
});

Deno.test("of each shape the first row is rendered, with any length; texts are not", async () => {
  deepStrictEqual((await ran("first")).generated, 0);
  for (const rendersNot of ["same", "text"]) {
    const { message, measured } = await ran(rendersNot);
    deepStrictEqual([message, measured], ["done", 1]);
  }
  const texts = [row("a", { prompt: "x" }), row("b", { prompt: "y" })];
  strictEqual((await ran("", { rows: texts })).measured, 0);
});

Deno.test("shapeOf() sees tools, roles and fields of what is used, whatever their order and values", () => {
  const calls = userMessage("", { tool_calls: [{}], name: "n" });
  const base = { prompt: [userMessage("a"), calls], completion: "b", rejected: "c" };
  const same = [
    {
      ...base,
      prompt: [userMessage("", { name: "", tool_calls: [] }), userMessage("z"), userMessage("y")],
    },
    { ...base, rejected: [userMessage("c")] },
  ];
  for (const other of same) strictEqual(shapeOf(other, "completion"), shapeOf(base, "completion"));
  const different = [
    { ...base, tools: TOOLS },
    { ...base, prompt: [userMessage("a")] },
    { ...base, prompt: [...base.prompt, { role: "tool", content: "" }] },
    { ...base, prompt: [...base.prompt, { role: "user", content: null }] },
    { ...base, rejected: [userMessage("c")] },
  ];
  const shapes = [base, ...different].map((one) => shapeOf(one, "preference"));
  strictEqual(new Set(shapes).size, 6);
  strictEqual(shapeOf({ prompt: "text", tools: TOOLS }, "prompt"), null);
});
