import { deepStrictEqual } from "node:assert/strict";
import { SMALL } from "../fixtures.ts";
import { inProcess } from "../in_process.ts";
import { freshFakeHome } from "../../runs/fake_home.ts";

const home = await freshFakeHome();

Deno.test("eval refuses a flow that is not evaluate, and records nothing", async () => {
  const { code, out, err } = await inProcess(["eval", SMALL], { home });
  deepStrictEqual([code, out, err], [
    2,
    "",
    `Cannot evaluate with ${SMALL} because its flow is 'quickstart': ` +
    "set flow: evaluate, or use 'run'\n",
  ]);
  deepStrictEqual(await home.store.heads({ limit: 1 }), []);
});

Deno.test("eval records a run of the evaluate flow", async () => {
  const config = {
    flow: "evaluate",
    model: { path: "model" },
    data: { eval: ["train.jsonl"] },
    reward: ["exact_match"],
    evaluate: { problems: 1 },
  };
  await Deno.writeTextFile(`${home.dir}/train.jsonl`, '{"prompt":"1+1","answer":"2"}\n');
  await Deno.writeTextFile(`${home.dir}/eval.yaml`, JSON.stringify(config));
  const args = ["eval", `${home.dir}/eval.yaml`, "--detach", "--id", "e"];
  const { code, out, err } = await inProcess(args, { home });
  deepStrictEqual([code, out], [0, "e\n"], err);
  deepStrictEqual((await home.store.head("e"))!.queue, "default");
});
