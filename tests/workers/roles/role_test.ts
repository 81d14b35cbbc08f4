import { deepStrictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { defineRole, environmentKind, environmentOf, NotResident } from "../../../workers/mod.ts";

Deno.test("environmentOf() picks the packages by engine and device", () => {
  deepStrictEqual(
    [
      environmentOf({ engine: "torch", device: "cpu" }),
      environmentOf({ engine: "deepspeed", device: "cuda" }),
      environmentOf({ engine: "huggingface", device: "cpu" }),
      environmentOf({ engine: "vllm", device: "cpu" }),
      environmentOf({ engine: "vllm", device: "cuda" }),
      environmentKind("vllm", false),
    ],
    ["torch_cpu", "deepspeed_cuda", "torch_cpu", "vllm_cpu", "vllm_cuda", "vllm_cpu"],
  );
});

const plain = { args: z.strictObject({}), output: z.strictObject({ done: z.boolean() }) };
const refusing = { args: z.strictObject({}), output: z.union([NotResident, plain.output]) };
const common = { name: "toy", module: "toy", spec: z.strictObject({}), groups: () => [] };

Deno.test("defineRole() requires that a role's rebuilding fits its operations", () => {
  const { starts, block, parts } = defineRole({
    ...common,
    operations: { plain },
    rebuilt: "by_start",
  });
  deepStrictEqual({ starts, block, parts }, { starts: "with_the_run", block: null, parts: {} });
  defineRole({ ...common, operations: { plain, refusing }, rebuilt: (ask) => ask("plain", {}) });
  throws(
    () => defineRole({ ...common, operations: { plain, refusing }, rebuilt: "by_start" }),
    /Cannot declare role 'toy' because 'refusing' may answer not_resident and .* rebuilt by_start/,
  );
  throws(
    () => defineRole({ ...common, operations: { plain }, rebuilt: (ask) => ask("plain", {}) }),
    /Cannot declare role 'toy' because nothing requests its rebuilding/,
  );
});
