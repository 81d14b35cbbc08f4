import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { InfrastructureError } from "../../engine/mod.ts";
import { type Operator, trainerRole } from "../../workers/mod.ts";
import { ask, askResident, done, isNotResident } from "../../workers/ask.ts";

const CALL = { key: "k", attempt: 1 };
const CREATED = { dir: "d", digest: "x" };
const args = { recipe: "tiny_qwen", seed: 1, dir: "d" };

/** Ranks that answer one after the other what they are given here. */
function answering(...answers: unknown[][]): Operator & { calls: unknown[] } {
  const calls: unknown[] = [];
  const call = (op: string, input: unknown) => {
    calls.push([op, input]);
    return Promise.resolve({ outputs: answers.shift()!, blobs: [], generation: 1 });
  };
  return { call, calls };
}

Deno.test("ask() sends the arguments as they are and gives the answer of every rank", async () => {
  const operator = answering([CREATED, { ...CREATED, digest: "y" }]);
  const { answers, blobs } = await ask(operator, [trainerRole, "create_model"], args, CALL);
  deepStrictEqual(operator.calls, [["create_model", args]]);
  deepStrictEqual(answers.map(({ digest }) => digest), ["x", "y"]);
  deepStrictEqual(blobs, []);
});

Deno.test("ask() refuses an undeclared answer and names rank, operation, field", async () => {
  const wrong = answering([CREATED, { dir: "d", digest: 7 }]);
  await rejects(ask(wrong, [trainerRole, "create_model"], args, CALL), (error) => {
    ok(error instanceof InfrastructureError);
    ok(
      error.message.includes(
        "the answer of rank 1 of the trainer to 'create_model' because digest is",
      ),
    );
    return true;
  });
});

const save = (operator: Operator) => () =>
  ask(operator, [trainerRole, "save"], { version: "v", dir: "d" }, CALL);
const SAVED = { version: "v", dir: "d", digest: "x", world_size: 1, files: [] };

Deno.test("askResident() brings the version that is missing, once, and asks again", async () => {
  const brought: (string | null)[] = [];
  const bring = (held: string | null) => Promise.resolve(void brought.push(held));
  const { answers } = await askResident(save(answering([{ not_resident: "w" }], [SAVED])), {
    bring,
  });
  deepStrictEqual([answers, brought], [[SAVED], ["w"]]);
  await askResident(save(answering([SAVED])), { bring });
  strictEqual(brought.length, 1, "it is resident");
  const twice = answering([{ not_resident: null }], [{ not_resident: null }]);
  await rejects(askResident(save(twice), { bring }), /does not have it right after loading it/);
});

Deno.test("isNotResident() and done() tell work from none", async () => {
  const refused = await save(answering([{ not_resident: null }]))();
  ok(isNotResident(refused));
  ok(!isNotResident(await save(answering([SAVED]))()));
  deepStrictEqual(done(await save(answering([SAVED]))()).answers, [SAVED]);
});
