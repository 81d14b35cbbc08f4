// @ts-types="@types/ws"
import { WebSocket } from "ws";
import { type HubFile, readHubFile } from "./hub_door.ts";

/** A socket from an agent's point of view. */
export interface LineSocket {
  readonly isOpen: boolean;
  send(frame: string | Uint8Array): void;
  /** Cuts the connection without a close frame. */
  terminate(): void;
}

export type LineListener = { open(): void; frame(text: string): void; closed(): void };

/**
 * How an agent finds and reaches an engine.
 * @internal
 */
export interface AgentLine {
  /** The current hub file; null if there is none. */
  hub(): HubFile | null;
  connect(hub: HubFile, listener: LineListener): LineSocket;
}

/** A WebSocket to the engine that the hub's file names. */
export function webSocketLine(hub_file: string): AgentLine {
  return {
    hub: () => readHubFile(hub_file),
    connect(hub, { open, frame, closed }) {
      const socket = new WebSocket(hub.url, { headers: { Authorization: `Bearer ${hub.token}` } });
      socket.on("open", open);
      socket.on("message", (data: Uint8Array) => frame(new TextDecoder().decode(data)));
      socket.on("error", () => {});
      socket.on("close", closed);
      return {
        get isOpen() {
          return socket.readyState === WebSocket.OPEN;
        },
        send: (data) => socket.send(data),
        terminate: () => socket.terminate(),
      };
    },
  };
}
