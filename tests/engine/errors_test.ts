import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import * as errors from "../../engine/errors.ts";
import {
  asEngineError,
  type Cause,
  causeOf,
  EngineError,
  errorFromJson,
  errorToJson,
  InfrastructureError,
  StageFailedError,
  TimeoutError_,
  UserCodeError,
  WorkerLostError,
} from "../../engine/errors.ts";

type Concrete = new (message: string, facts?: Record<string, unknown>) => EngineError;
const concrete = (Object.values(errors) as unknown[]).filter((value): value is Concrete =>
  typeof value === "function" && value.prototype instanceof EngineError
);

Deno.test("every error class has a unique code and survives JSON", () => {
  ok(concrete.length >= 16);
  strictEqual(new Set(concrete.map((Class) => new Class("x").code)).size, concrete.length);
  for (const Class of concrete) {
    const error = new Class("Cannot X because Y", { n: 1 });
    const back = errorFromJson(JSON.parse(JSON.stringify(error)));
    strictEqual(back.constructor, Class);
    deepStrictEqual(back.toJSON(), error.toJSON());
    deepStrictEqual([back.message, back.facts, back.name], [
      "Cannot X because Y",
      { n: 1 },
      Class.name,
    ]);
  }
});

Deno.test("errors whose cause may pass are retryable unless they say otherwise", () => {
  const retryable = concrete.filter((Class) => new Class("x").retryable).map((Class) =>
    new Class("x").code
  );
  deepStrictEqual(retryable.sort(), [
    "infrastructure",
    "no_progress",
    "out_of_memory",
    "timeout",
    "worker_lost",
  ]);
  const full = new InfrastructureError("disk full", {}, { retryable: false });
  strictEqual(errorFromJson(full.toJSON()).retryable, false);
});

Deno.test("StageFailedError takes the budget of its cause and keeps it through JSON", () => {
  const cause = new WorkerLostError("rank 1 is gone");
  const error = new StageFailedError("Cannot finish 'train'", { key: "round/1/train#1" }, {
    cause,
  });
  strictEqual(error.cause_kind, "worker_lost");
  const json = errorToJson(error);
  deepStrictEqual([json.because, json.cause_kind], ["rank 1 is gone", "worker_lost"]);
  deepStrictEqual(errorFromJson(json).toJSON(), json);
});

Deno.test("asEngineError() takes what user code throws as user_code, with its stack", () => {
  const thrown = new RangeError("row 3 has no answer");
  const error = asEngineError(thrown);
  ok(error instanceof UserCodeError);
  strictEqual(error.message, "RangeError: row 3 has no answer");
  match(String(error.facts.stack), /errors_test\.ts/);
  strictEqual(error.cause, thrown);
  strictEqual(asEngineError("just text").message, "just text");
  ok(asEngineError(new DOMException("too slow", "TimeoutError")) instanceof TimeoutError_);
  strictEqual(asEngineError(error), error);
});

Deno.test("causeOf() answers which budget a failure counts against", () => {
  const cases: [unknown, Cause][] = [
    [new WorkerLostError("x"), "worker_lost"],
    [new DOMException("x", "TimeoutError"), "timeout"],
    [new TypeError("x"), "user_code"],
    [null, "user_code"],
  ];
  for (const [error, cause] of cases) strictEqual(causeOf(error), cause);
});

Deno.test("errorFromJson() of an unknown code is an infrastructure error", () => {
  const json = {
    code: "toString",
    cause_kind: "timeout" as const,
    retryable: true,
    message: "m",
    facts: {},
  };
  strictEqual(errorFromJson(json).code, "infrastructure");
});
