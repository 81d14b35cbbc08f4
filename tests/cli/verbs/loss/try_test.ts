import { deepStrictEqual, match } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../../runs/fake_home.ts";
import { inProcess } from "../../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 1 });
await executeFake(home, "a");
const loss = (...args: string[]) => inProcess(["loss", "try", ...args], { home });

Deno.test("loss try refuses a batch that is not RUN/ROUND before it starts Python", async () => {
  for (
    const [batch, message] of [
      ["3", /^Cannot find batch '3': expected RUN\/ROUND, as in my_run\/3$/m],
      ["/3", /^Cannot find batch '\/3'/],
      ["a/0", /^Cannot use '0' for --batch RUN\/ROUND: give a whole number of at least 1$/m],
      ["a/round/x", /^Cannot use 'x' for --batch RUN\/ROUND/],
      ["b/1", /^Cannot find run 'b'/],
    ] as const
  ) {
    const { code, out, err } = await loss("grpo", "--batch", batch);
    deepStrictEqual([code, out], [2, ""]);
    match(err, message);
  }
});

Deno.test("loss try refuses algorithms and settings that do not exist", async () => {
  const near = await loss("gspp", "--batch", "a/1");
  match(near.err, /^Cannot try 'gspp' because there is no such algorithm \(did you mean gspo\?\)/);
  const setting = await loss("grpo", "clipp=1", "--batch", "a/1");
  match(setting.err, /^Cannot try 'grpo' with these settings:\n/);
  const file = await loss("examples/my_algorithm.py", "mask_truncated=3", "--batch", "a/1");
  match(
    file.err,
    /^Cannot try '.*my_algorithm.py' with these settings:\n {2}mask_truncated: .*expected boolean/,
  );
  deepStrictEqual([near.code, setting.code, file.code], [2, 2, 2]);
});
