import { deepStrictEqual, ok } from "node:assert/strict";
import type { Stage } from "../../../engine/mod.ts";
import * as flows from "../../../flows/mod.ts";
import type { Phase } from "../../../workers/mod.ts";

const PHASES: readonly Phase[] = ["generation", "publication", "training", "checkpoint", "other"];

function isStage(value: unknown): value is Stage {
  return typeof value === "object" && value !== null && "body" in value && "phase" in value;
}

Deno.test("the phase of every shipped stage is one that operations have too", () => {
  const stages = Object.values(flows as Record<string, unknown>).filter(isStage);
  ok(stages.length >= 15, `only ${stages.length} stages were found`);
  const odd = stages.filter(({ phase }) => !PHASES.some((known) => known === phase));
  deepStrictEqual(odd.map(({ name, phase }) => [name, phase]), []);
});
