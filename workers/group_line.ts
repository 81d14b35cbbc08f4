import type { ReliableMessage } from "./agent_link.ts";
import type { Phase } from "./roles/role.ts";

/** Blobs as a result announces them. */
export type Declared = { sha256: string; bytes: number }[];

/**
 * The line to whoever has a group's ranks.
 * @internal
 */
export interface GroupLine {
  /** Of the ranks' sockets; null: loopback. Those of several hosts with a comma between. */
  readonly interface: string | null;
  /** Ranks on each host, where there are several. */
  readonly parts: readonly number[] | null;
  readonly blobs: { take(task: string, declared: Declared): Uint8Array[] };
  send(message: ReliableMessage, phase?: Phase): void;
  release(task: string): void;
  forget(task: string): void;
}
