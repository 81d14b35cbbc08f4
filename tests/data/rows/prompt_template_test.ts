import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import {
  fieldsNamed,
  fillTemplate,
  isTemplate,
  templateProblem,
  withTemplate,
} from "../../../data/rows/prompt_template.ts";
import { RowProblem } from "../../../data/rows/row_fields.ts";

const MMLU = {
  question: "Which number is even?",
  subject: "arithmetic",
  choices: ["one", "two", "three", "five"],
  answer: 1,
};

Deno.test("fillTemplate() puts fields between texts, nested ones and numbers too", () => {
  strictEqual(
    fillTemplate("{subject}: {question} {choices.1} or {meta.n}?", { ...MMLU, meta: { n: 1e21 } }),
    "arithmetic: Which number is even? two or 1000000000000000000000?",
  );
  strictEqual(
    fillTemplate("{ answer }{ choices | letters }", { answer: 1, choices: [2] }),
    "1A. 2",
  );
  strictEqual(fillTemplate("{a b}", { "a b": "a field with a space" }), "a field with a space");
});

Deno.test("fillTemplate() writes options with letters, one per line", () => {
  strictEqual(
    fillTemplate("{question}\n{choices|letters}\n", MMLU),
    "Which number is even?\nA. one\nB. two\nC. three\nD. five\n",
  );
  const most = Array.from({ length: 26 }, (_, i) => i);
  match(fillTemplate("{o|letters}", { o: most }), /^A\. 0\n.*\nZ\. 25$/s);
});

Deno.test("fillTemplate() leaves what a field contains as it is", () => {
  const row = { q: "{choices} {{x}} $& $1", choices: "never" };
  strictEqual(fillTemplate("{q}", row), row.q);
});

Deno.test("fillTemplate() writes doubled braces as braces", () => {
  strictEqual(
    fillTemplate("{question} \\boxed{{}} {{{subject}}}", MMLU),
    "Which number is even? \\boxed{} {arithmetic}",
  );
});

Deno.test("fillTemplate() refuses a row that lacks a field, or has something else there", () => {
  const refused = (template: string, row: Record<string, unknown>) => {
    let problem: unknown;
    throws(() => fillTemplate(template, row), (error) => {
      problem = error;
      return error instanceof RowProblem;
    });
    const { field, message } = problem as RowProblem;
    return [field, message];
  };
  deepStrictEqual(
    [
      refused("{body}", { question: "q", none: null }),
      refused("{body}", { question: "q", body: null }),
      refused("{choices}", MMLU),
      refused("{meta}", { meta: { n: 1 } }),
      refused("{question|letters}", MMLU),
      refused("{o|letters}", { o: [] }),
      refused("{o|letters}", { o: ["a", null] }),
      refused("{o|letters}", { o: Array.from({ length: 27 }, () => "x") }),
    ],
    [
      ["body", "the row has no 'body' for the template (it has 'question')"],
      ["body", "the row has no 'body' for the template (it has 'question')"],
      [
        "choices",
        "expected a text or a number for the template, got a list; write {choices.0} for one " +
        "entry, or {choices|letters} for a list of options",
      ],
      [
        "meta",
        "expected a text or a number for the template, got an object; name a field inside it: " +
        "{meta.NAME}",
      ],
      [
        "question",
        "expected a list of 1 to 26 texts for {question|letters}, got the text " +
        '"Which number is even?"',
      ],
      ["o", "expected a list of 1 to 26 texts for {o|letters}, got a list of 0"],
      ["o", "expected a list of 1 to 26 texts for {o|letters}, got a list with null"],
      ["o", "expected a list of 1 to 26 texts for {o|letters}, got a list of 27"],
    ],
  );
});

Deno.test("templateProblem() finds braces that name nothing, and forms that are not known", () => {
  const problems = ["{", "a } b", "{}", "{a|}", "{a|numbers}", "{{}}", "\\boxed{} {q}"]
    .map(templateProblem);
  deepStrictEqual(problems, [
    'a brace in "{" names no field; write {{ or }} for a brace of the text',
    'a brace in "a } b" names no field; write {{ or }} for a brace of the text',
    'a brace in "{}" names no field; write {{ or }} for a brace of the text',
    "'{a|}' asks for a form that is not known; the only one is {a|letters}",
    "'{a|numbers}' asks for a form that is not known; the only one is {a|letters}",
    "it names no field, so every prompt would be the same: write {NAME}",
    'a brace in "\\\\boxed{} {q}" names no field; write {{ or }} for a brace of the text',
  ]);
  deepStrictEqual(["{a}", "{a.b|letters} {{}}"].map(templateProblem), [null, null]);
});

Deno.test("withTemplate() leaves a row whose prompt is a field as it is", () => {
  const fields = { prompt: "question" };
  deepStrictEqual(withTemplate(MMLU, fields), { columns: MMLU, fields });
  strictEqual(isTemplate(undefined), false);
});

Deno.test("withTemplate() refuses a prompt without a word", () => {
  throws(
    () => withTemplate({ a: " ", b: "" }, { prompt: "{a}\n{b}" }),
    (error) => error instanceof RowProblem && /it is empty/.test(error.message),
  );
});

Deno.test("fieldsNamed() lists the fields of a name or a template", () => {
  deepStrictEqual(
    ["question", "{{ {a.b} {c|letters}"].map(fieldsNamed),
    [["question"], ["a.b", "c"]],
  );
});
