import type { ReliableMessage } from "../line/agent_link.ts";
import type { Phase } from "../roles/role.ts";

/** Blobs as a result lists them. */
export type Declared = { sha256: string; bytes: number }[];

/**
 * The line to the agents that run a group's ranks.
 * @internal
 */
export interface GroupLine {
  /**
   * The interface of the ranks' sockets; null: loopback. Several hosts' are joined with a comma.
   */
  readonly interface: string | null;
  /** Ranks on each host; null for one host. */
  readonly parts: readonly number[] | null;
  readonly blobs: { take(task: string, declared: Declared): Uint8Array[] };
  send(message: ReliableMessage, phase?: Phase): void;
  release(task: string): void;
  forget(task: string): void;
}
