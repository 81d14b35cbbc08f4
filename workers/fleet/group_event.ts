import type { EngineError } from "../../engine/mod.ts";
import type { GroupState } from "../line/protocol.ts";

/** What a group reports about itself. */
export type GroupEvent =
  | ({ type: "group"; failure: EngineError | null } & GroupState)
  | {
    type: "replaced";
    group: string;
    generation: number;
    replacements: number;
    error: EngineError;
  }
  /**
   * An operation ended, with or without success. By the monotonic clock: when it was sent to the
   * agent, and when its answer arrived.
   */
  | {
    type: "operation";
    group: string;
    op: string;
    key: string;
    sent_ms: number;
    ended_ms: number;
  };
