import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
// @ts-types="@types/ws"
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { InfrastructureError, InvalidInputError } from "../engine/mod.ts";
import type { FrameSocket } from "./agent_link.ts";
import { FRAME_BYTES_MAX } from "./protocol.ts";

/** MessagePack's keys and lengths around a blob's data. */
const FRAME_OVERHEAD_BYTES = 4096;
/** Sockets that are open at once; an agent has one. */
const SOCKETS_MAX = 64;

/** What `hub.json` holds: an agent reads it before every connect. */
export type HubFile = { url: string; token: string; engine_boot: string; epoch: number };

/** What is told of a socket. */
export type SocketListener = { frame(data: Uint8Array, binary: boolean): void; closed(): void };

/** A socket that an agent opened. */
export interface DoorSocket extends FrameSocket {
  listen(listener: SocketListener): void;
}

/** Where agents come in, and where they are told of it: a WebSocket server and `hub.json`, or what a simulator has for them. */
export interface HubDoor {
  /** Listens. Answers its address. */
  open(opened: (socket: DoorSocket) => void): Promise<string>;
  announce(content: HubFile): Promise<void>;
  /** What was announced last, by whichever engine. Read now; null if there is nothing that can be read. */
  announced(): HubFile | null;
  /** Takes the announcement back. */
  withdraw(): Promise<void>;
  /** Drops every connection, without a word. */
  terminate(): void;
  /** Listens no more. */
  close(): Promise<void>;
}

export type DoorOptions = {
  /** HOME/runs/RUN/hub.json. */
  file: string;
  token: string;
  host: string;
  /** 0: any free port. */
  port: number;
};

/** A WebSocket server. A socket is refused before the upgrade without the run's token. */
export class WebSocketDoor implements HubDoor {
  #options: DoorOptions;
  #http: Server;
  #sockets: WebSocketServer;
  #hosts: string[] = [];
  #terminated = false;

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#http = createServer((_request, response) => {
      response.statusCode = 404;
      response.end();
    });
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: FRAME_BYTES_MAX + FRAME_OVERHEAD_BYTES,
      perMessageDeflate: false,
    });
  }

  async open(opened: (socket: DoorSocket) => void): Promise<string> {
    this.#http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, { head, opened }));
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#http.once("error", (error: Error & { code?: string }) => {
        if (error.code !== "EADDRINUSE") {
          return reject(new InfrastructureError(`Cannot listen on ${host}:${port}: ${error.message}`, { host, port }));
        }
        const mend = "choose another `workers.port`, or 0 for any free one";
        reject(
          new InvalidInputError(`Cannot listen on ${host}:${port} as the port is in use: ${mend}`, { host, port }),
        );
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
    await Deno.writeTextFile(temporary, JSON.stringify(content) + "\n", { mode: 0o600 });
    await Deno.rename(temporary, file);
  }

  announced(): HubFile | null {
    try {
      return JSON.parse(Deno.readTextFileSync(this.#options.file));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof SyntaxError) return null;
      throw error;
    }
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
    this.#http.closeAllConnections();
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
  }

  #upgrade(
    request: IncomingMessage,
    socket: Duplex,
    { head, opened }: { head: Buffer; opened: (socket: DoorSocket) => void },
  ): void {
    const refusal = this.#refusal(request);
    if (refusal) {
      socket.on("error", () => socket.destroy()); // Cut while it is told: unheard, that would end the process.
      socket.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (upgraded) => opened(new Upgraded(upgraded)));
  }

  /** A browser's page sends an Origin and may reach loopback by a name of its own: both are refused. */
  #refusal(request: IncomingMessage): string | null {
    const { authorization, origin, host } = request.headers;
    if (!sameSecret(authorization ?? "", `Bearer ${this.#options.token}`)) return "401 Unauthorized";
    if (origin !== undefined || !this.#hosts.includes(host ?? "")) return "403 Forbidden";
    if (request.url !== "/agent") return "404 Not Found";
    if (this.#terminated || this.#sockets.clients.size >= SOCKETS_MAX) return "503 Service Unavailable";
    return null;
  }
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

  listen({ frame, closed }: SocketListener): void {
    this.socket.on("message", (raw, binary) => frame(bytesOf(raw), binary));
    this.socket.on("close", closed);
    this.socket.on("error", () => this.socket.terminate()); // Too large a frame, or a broken pipe: the agent connects again.
  }
}

function bytesOf(raw: RawData): Uint8Array {
  if (Array.isArray(raw)) return new Uint8Array(Buffer.concat(raw));
  return new Uint8Array(raw as Buffer);
}

function sameSecret(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
