import type { EngineMessage, FailureReport, GroupState, HeldGroup } from "../workers/mod.ts";
import type { FakeScript } from "./fake_script.ts";

export type StartGroup = Extract<EngineMessage, { type: "start_group" }>;

/** A group that a fake agent was asked to start: it is ready at once, or failed. */
export class FakeGroup {
  readonly start: StartGroup;
  /** Aborted when the generation ends. */
  readonly ended: AbortController = new AbortController();
  /** What the script says of the start. */
  readonly failures: FailureReport[];
  state: GroupState["state"];
  /** What its ranks say of themselves. */
  readonly info: Record<string, unknown>;

  constructor(start: StartGroup, { failStart, info }: FakeScript) {
    this.start = start;
    this.failures = failStart?.(start.group, start.generation) ?? [];
    this.state = this.failures.length > 0 ? "failed" : "ready";
    this.info = info?.[start.role] ?? {};
  }

  /** Its generation is over. */
  end(state: "failed" | "stopped", why: string): void {
    this.ended.abort(new Error(why));
    this.state = state;
  }

  /** Ranks of this host: the first of them, and how many. */
  get ranks(): { first: number; ranks: number } {
    return this.start.part ?? { first: 0, ranks: this.start.ranks };
  }

  /** What a heartbeat says of it. */
  get reported(): GroupState {
    const { group, generation } = this.start;
    const { first, ranks } = this.ranks;
    const rank = {
      pid: 1,
      process_start: "0",
      exit_code: null,
      signal: null,
      process_state: null,
      state: this.state === "ready" ? "ready" as const : "exited" as const,
    };
    const states = Array.from({ length: ranks }, (_, i) => ({ rank: first + i, ...rank }));
    return { group, generation, state: this.state, ranks: states };
  }

  /** What a hello says of it. */
  get held(): HeldGroup {
    const { role, spec_hash } = this.start;
    const info = this.state === "ready" ? this.info : {};
    return { ...this.reported, role, spec_hash, info };
  }
}
