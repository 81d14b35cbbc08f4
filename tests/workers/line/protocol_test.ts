import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { failureReport } from "../../../testing/mod.ts";
import { AgentMessage, EngineMessage, FailureReport, RankState } from "../../../workers/mod.ts";

const result = { type: "result", seq: 1, task: "t", outputs: [{ json: "1" }], blobs: [] };
const reads = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success;

Deno.test("AgentMessage reads only messages from the agent", () => {
  const release = { type: "release", epoch: 1, seq: 1, task: "t" };
  deepStrictEqual([reads(AgentMessage, result), reads(EngineMessage, result)], [true, false]);
  deepStrictEqual([reads(AgentMessage, release), reads(EngineMessage, release)], [false, true]);
});

Deno.test("reliable messages are numbered from 1, and the engine's carry its epoch", () => {
  strictEqual(reads(AgentMessage, { ...result, seq: 0 }), false);
  const { seq: _, ...unnumbered } = result;
  strictEqual(reads(AgentMessage, unnumbered), false);
  strictEqual(reads(EngineMessage, { type: "cancel", seq: 1, task: "t" }), false);
  strictEqual(reads(EngineMessage, { type: "cancel", seq: 1, task: "t", epoch: 0 }), false);
});

Deno.test("messages refuse unknown fields and names without an end", () => {
  strictEqual(reads(AgentMessage, { ...result, more: 1 }), false);
  strictEqual(reads(AgentMessage, { ...result, task: "" }), false);
  strictEqual(reads(AgentMessage, { ...result, task: "t".repeat(201) }), false);
});

Deno.test("an output is text inside the message or the place of a blob, never both", () => {
  const of = (output: unknown) => reads(AgentMessage, { ...result, outputs: [output] });
  deepStrictEqual([of({ blob: 0 }), of({ blob: -1 }), of({ json: "1", blob: 0 })], [
    true,
    false,
    false,
  ]);
});

Deno.test("an error has at least one report, whose log is bounded", () => {
  const error = { type: "error", seq: 1, task: "t" };
  const report = failureReport({ rank: 0 });
  strictEqual(reads(AgentMessage, { ...error, failures: [] }), false);
  strictEqual(reads(AgentMessage, { ...error, failures: [report] }), true);
  strictEqual(reads(FailureReport, { ...report, log_tail: Array(41).fill("") }), false);
});

Deno.test("what older agents did not send has a default", () => {
  const state = RankState.parse({ rank: 0, pid: 1, process_start: "", state: "ready" });
  deepStrictEqual([state.exit_code, state.signal, state.process_state], [null, null, null]);
  const progress = { type: "progress", task: "t", rank: 0, phase: "step", done: 1, total: null };
  deepStrictEqual(AgentMessage.parse(progress), { ...progress, metrics: {} });
});
