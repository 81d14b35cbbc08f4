import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { z } from "zod";
// @ts-types="@types/ws"
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import {
  type Clock,
  InfrastructureError,
  InvalidInputError,
  PRIVATE_FILE,
  readDerivedJson,
} from "../../engine/mod.ts";
import type { FrameSocket } from "./agent_link.ts";
import { LIMITS } from "./limits.ts";
import { Strangers } from "./strangers.ts";

/** Sockets that are open at once; an agent has one. */
const SOCKETS_MAX = 64;

/** What `hub.json` holds: an agent reads it before every connect. */
export const /** @internal */ HubFile = z.object({
  url: z.string(),
  token: z.string(),
  engine_boot: z.string(),
  epoch: z.int().nonnegative(),
});
export type HubFile = z.infer<typeof HubFile>;

/** The contents of a hub's file; null if they cannot be used. */
export function readHubFile(path: string): HubFile | null {
  return HubFile.safeParse(readDerivedJson(path)).data ?? null;
}

/** Events of a socket. `broken`: its other end sent an invalid frame; it is closed. */
export type SocketListener = {
  frame(data: Uint8Array, binary: boolean): void;
  broken(reason: string): void;
  closed(): void;
};

/** A socket that an agent opened. */
export interface DoorSocket extends FrameSocket {
  listen(listener: SocketListener): void;
}

/**
 * Where agents connect and how they find it: a WebSocket server and `hub.json`, or a simulator's
 * version of both.
 * @internal
 */
export interface HubDoor {
  /** Listens. Returns its address. */
  open(opened: (socket: DoorSocket) => void): Promise<string>;
  announce(content: HubFile): Promise<void>;
  /** The last announcement of any engine, read now; null if none can be read. */
  announced(): HubFile | null;
  /** Removes the announcement. */
  withdraw(): Promise<void>;
  /** Drops every connection without a close frame. */
  terminate(): void;
  /** Stops listening. */
  close(): Promise<void>;
}

type DoorOptions = {
  run: string;
  /** HOME/runs/RUN/hub.json. */
  file: string;
  token: string;
  host: string;
  /** 0: any free port. */
  port: number;
  clock: Clock;
};

/** A WebSocket server. A socket is refused before the upgrade without the run's token. */
export class WebSocketDoor implements HubDoor {
  #options: DoorOptions;
  #http: Server;
  #sockets: WebSocketServer;
  #strangers: Strangers;
  #hosts: string[] = [];
  #terminated = false;

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#strangers = new Strangers(options.clock);
    this.#http = createServer(({ socket }) => refuse(socket, "404 Not Found"));
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: LIMITS.message_bytes_max,
      perMessageDeflate: false,
    });
  }

  async open(opened: (socket: DoorSocket) => void): Promise<string> {
    this.#http.on("connection", (socket: Duplex) => this.#strangers.add(socket));
    this.#http.on(
      "upgrade",
      (request, socket, head) => this.#upgrade(request, socket, { head, opened }),
    );
    const { run, host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#http.once("error", (error: Error & { code?: string }) => {
        if (error.code !== "EADDRINUSE") {
          return reject(
            new InfrastructureError(`Cannot listen on ${host}:${port}: ${error.message}`, {
              host,
              port,
            }),
          );
        }
        const text = `Cannot listen on ${host}:${port} because the port is in use. Fix: stop ` +
          "the program that uses it, then resume; or resume with any free port:" +
          `\n  next: deno task rl resume ${run} ` +
          "workers.port=0";
        reject(new InvalidInputError(text, { host, port }));
      });
      this.#http.listen(port, host, () => resolve());
    });
    const address = this.#http.address();
    const bound = typeof address === "object" && address ? address.port : port;
    const name = host.includes(":") ? `[${host}]` : host;
    this.#hosts = [`${name}:${bound}`, `localhost:${bound}`];
    return `ws://${name}:${bound}/agent`;
  }

  /** Writes `hub.json`, which only its owner may read. */
  async announce(content: HubFile): Promise<void> {
    const { file } = this.#options;
    await Deno.mkdir(dirname(file), { recursive: true });
    const temporary = `${file}.${content.engine_boot}`;
    await Deno.writeTextFile(temporary, JSON.stringify(content) + "\n", { mode: PRIVATE_FILE });
    await Deno.rename(temporary, file);
  }

  announced(): HubFile | null {
    return readHubFile(this.#options.file);
  }

  async withdraw(): Promise<void> {
    await Deno.remove(this.#options.file);
  }

  terminate(): void {
    this.#terminated = true;
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  async close(): Promise<void> {
    this.terminate();
    this.#sockets.close();
    this.#strangers.refuseAll();
    this.#http.closeAllConnections();
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
  }

  #upgrade(
    request: IncomingMessage,
    socket: Duplex,
    { head, opened }: { head: Buffer; opened: (socket: DoorSocket) => void },
  ): void {
    const refusal = this.#refusal(request);
    if (refusal) return refuse(socket, refusal);
    this.#strangers.know(socket);
    this.#sockets.handleUpgrade(
      request,
      socket,
      head,
      (upgraded) => opened(new Upgraded(upgraded)),
    );
  }

  /**
   * Refuses pages in a browser: they send an Origin, and may reach loopback by a custom host name.
   */
  #refusal(request: IncomingMessage): string | null {
    const { authorization, origin, host } = request.headers;
    if (!sameSecret(authorization ?? "", `Bearer ${this.#options.token}`)) {
      return "401 Unauthorized";
    }
    if (origin !== undefined || !this.#hosts.includes(host ?? "")) return "403 Forbidden";
    if (request.url !== "/agent") return "404 Not Found";
    if (this.#terminated || this.#sockets.clients.size >= SOCKETS_MAX) {
      return "503 Service Unavailable";
    }
    return null;
  }
}

/** Answers and closes. A socket that is only ended stays open until the other end closes it. */
function refuse(socket: Duplex, why: string): void {
  socket.end(
    `HTTP/1.1 ${why}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    () => socket.destroy(),
  );
}

/** A WebSocket of the server. */
class Upgraded implements DoorSocket {
  constructor(readonly socket: WebSocket) {}

  get bufferedAmount(): number {
    return this.socket.bufferedAmount;
  }

  send(data: string): void {
    this.socket.send(data);
  }

  close(code: number, reason: string): void {
    this.socket.close(code, reason);
  }

  listen({ frame, broken, closed }: SocketListener): void {
    this.socket.on("message", (raw, binary) => frame(bytesOf(raw), binary));
    this.socket.on("close", closed);
    this.socket.on("error", (error: Error & { code?: string }) => {
      // Other errors are the network's: the agent reconnects.
      if (error.code?.startsWith("WS_ERR_")) broken(error.message);
      this.socket.terminate();
    });
  }
}

function bytesOf(raw: RawData): Uint8Array {
  if (Array.isArray(raw)) return new Uint8Array(Buffer.concat(raw));
  return new Uint8Array(raw as Buffer);
}

function sameSecret(presented: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(presented), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
