import type { WorkersEvent } from "../../workers/mod.ts";

type Replaced = Extract<WorkersEvent, { type: "replaced" }>;

/** Describes what happened to worker processes; null for routine events. */
export function workerLine(event: WorkersEvent): string | null {
  if (event.type === "replaced") return `${lossOf(event)}: generation ${event.generation} starts`;
  if (event.type === "agent" && event.state === "lost") {
    return `agent ${event.agent_id} was lost: ${firstLine(event.reason ?? "")}`;
  }
  return null;
}

function lossOf({ group, error }: Replaced): string {
  const { rank, cause, signal, exit_code, agent_id, op, limit_ms } = error.facts;
  if (agent_id !== undefined) return `${group} was lost with its agent`;
  const place = rank === undefined ? group : `${group} rank ${rank}`;
  if (error.code === "no_progress") {
    // A start that takes too long, and a hang that the log tells of, have no operation's limit.
    return typeof limit_ms === "number" && typeof op === "string"
      ? `${group} hung in '${op}': no progress for ${limit_ms / 1000} s`
      : `${place} hung: ${firstLine(error.message)}`;
  }
  if (error.code === "out_of_memory") {
    return `${place} ran out of memory${signal ? ` (${signal})` : ""}`;
  }
  if (signal) return `${place} died (${signal})`;
  if (cause === "exit") return `${place} ended (exit code ${exit_code})`;
  return `${place} failed: ${firstLine(error.message)}`;
}

/** Log lines follow in a worker's error; `logs` shows them. */
function firstLine(message: string): string {
  return message.split("\n", 1)[0]!;
}
