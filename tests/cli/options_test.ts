import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { choice, id, list, whole, wholeNumber } from "../../cli/options.ts";

Deno.test("wholeNumber() reads whole numbers from the least one on, and nothing else", () => {
  const read = (text: string) => wholeNumber(text, { name: "--lines", least: 0 });
  deepStrictEqual(["0", "12", "1e3"].map(read), [0, 12, 1000]);
  for (const text of ["-1", "1.5", "ten", "9007199254740993", "Infinity", "NaN"]) {
    throws(() => read(text), {
      message: `Cannot use '${text}' for --lines: give a whole number of at least 0`,
    });
  }
});

Deno.test("whole() takes numbers from 1 on, unless it is given a different least", () => {
  const [from1, from0] = [whole("<n>", "number"), whole("<n>", "number", { least: 0 })];
  strictEqual(from0.read!("0", "--n", undefined), 0);
  throws(() => from1.read!("0", "--n", undefined), /'0' for --n: .* at least 1$/);
});

Deno.test("list() adds to what the line gave before, and leaves that as it was", () => {
  const { read } = list("<name>", "names");
  const one = read!("a", "--name", undefined);
  deepStrictEqual(read!("b", "--name", one), ["a", "b"]);
  deepStrictEqual(one, ["a"]);
});

Deno.test("choice() reads one of its names, and says which it has", () => {
  const x = choice(["round", "step"], "what x is");
  deepStrictEqual([x.takes, x.read!("step", "--x", undefined)], ["<round|step>", "step"]);
  throws(() => x.read!("rond", "--x", undefined), {
    message: "Cannot use 'rond' for --x (did you mean round?): give one of round, step",
  });
});

Deno.test("id takes the ids of runs", () => {
  strictEqual(id.read!("my.run-1", "--id", undefined), "my.run-1");
  throws(() => id.read!("../x", "--id", undefined), /Fix: choose another --id/);
});
