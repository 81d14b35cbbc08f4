import { Buffer } from "node:buffer";
import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
// @ts-types="@types/ws"
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { type Clock, InfrastructureError, InvalidInputError, systemClock } from "../engine/mod.ts";
import { AgentLink, type Hello } from "./agent_link.ts";
import type { Phase } from "./operation_phase.ts";
import { AgentMessage, FRAME_BYTES_MAX, PROTOCOL_VERSION } from "./protocol.ts";

/** MessagePack's keys and lengths around a blob's data. */
const FRAME_OVERHEAD_BYTES = 4096;
/** Sockets that are open at once; an agent has one. */
const SOCKETS_MAX = 64;
const HELLO_MS = 10_000;

/** What `hub.json` holds: an agent reads it before every connect. */
export type HubFile = { url: string; token: string; engine_boot: string; epoch: number };

export type HubOptions = {
  run: string;
  epoch: number;
  /** HOME/runs/RUN/hub.json. */
  file: string;
  clock?: Clock;
  host?: string;
  /** 0: any free port. */
  port?: number;
  heartbeatMs?: number;
  /** An agent that has no engine for this long kills its ranks and ends. */
  graceMs?: number;
  /** Fault tests count frames by this. */
  onFrame?: (phase: Phase) => void;
};

/**
 * The WebSocket server that agents connect back to. A socket is refused before the upgrade without the run's token; after it,
 * only agents that `expect` announced are let in, everybody else is told to `drop`.
 */
export class Hub {
  readonly engineBoot = randomBytes(8).toString("hex");
  readonly token = randomBytes(32).toString("hex");
  readonly file: string;
  #options: Required<HubOptions>;
  #http: Server;
  #sockets: WebSocketServer;
  #links = new Map<string, AgentLink>();
  #url = "";
  #hosts: string[] = [];
  #announced = false;
  #left = false;
  #ended = new AbortController();

  private constructor(options: Required<HubOptions>) {
    this.#options = options;
    this.file = options.file;
    this.#http = createServer((_request, response) => {
      response.statusCode = 404;
      response.end();
    });
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: FRAME_BYTES_MAX + FRAME_OVERHEAD_BYTES,
      perMessageDeflate: false,
    });
    this.#http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Listens and says so: `listen`, then `announce`. */
  static async start(options: HubOptions): Promise<Hub> {
    const hub = await Hub.listen(options);
    await hub.announce();
    return hub;
  }

  /** Listens. No agent knows it before `announce`, so that those that are to come can be named to `expect` first. */
  static async listen(options: HubOptions): Promise<Hub> {
    const hub = new Hub({
      clock: systemClock,
      host: "127.0.0.1",
      port: 0,
      heartbeatMs: 1000,
      graceMs: 2000,
      onFrame: () => {},
      ...options,
    });
    await hub.#listen();
    return hub;
  }

  get url(): string {
    return this.#url;
  }

  /**
   * Lets an agent in, one that serves this engine first unless it is `adopted`. The link can be written to at once; the
   * agent gets it when it comes.
   */
  expect(agentId: string, { adopted = false }: { adopted?: boolean } = {}): AgentLink {
    const { run, epoch, clock, heartbeatMs, graceMs, onFrame } = this.#options;
    const link = new AgentLink({
      agentId,
      run,
      epoch,
      engineBoot: this.engineBoot,
      clock,
      heartbeatMs,
      graceMs,
      adopted,
      onFrame,
    });
    this.#links.set(agentId, link);
    return link;
  }

  /** The agent is not wanted any more: its socket is closed, and told to `drop` if it comes again. */
  forget(agentId: string): void {
    this.#links.get(agentId)?.close();
    this.#links.delete(agentId);
  }

  /**
   * The epoch of an engine that has announced itself in place of this one; null if none has. Reads the file now; what it
   * said before `announce` is of engines that the store had this one follow.
   */
  supersededBy(): number | null {
    if (!this.#announced) return null;
    try {
      const { engine_boot, epoch } = JSON.parse(Deno.readTextFileSync(this.file)) as HubFile;
      return engine_boot !== this.engineBoot && epoch > this.#options.epoch ? epoch : null;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof SyntaxError) return null;
      throw error;
    }
  }

  /** Drops every connection and answers nobody any more, so that no agent is told to end: they may serve another engine. */
  leave(): void {
    this.#left = true;
    for (const agentId of [...this.#links.keys()]) this.forget(agentId);
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  /** Closes every connection. `keepFile` when another engine has taken the run over: the file is its own. */
  async close({ keepFile = false }: { keepFile?: boolean } = {}): Promise<void> {
    this.#ended.abort(new Error("the hub is closed"));
    for (const agentId of [...this.#links.keys()]) this.forget(agentId);
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#sockets.close();
    this.#http.closeAllConnections();
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
    if (!keepFile) await this.#removeFile();
  }

  async #listen(): Promise<void> {
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
    this.#url = `ws://${name}:${bound}/agent`;
    this.#hosts = [`${name}:${bound}`, `localhost:${bound}`];
  }

  /** Writes `hub.json`, which only its owner may read: agents of the run come from now on. */
  async announce(): Promise<void> {
    const content: HubFile = {
      url: this.#url,
      token: this.token,
      engine_boot: this.engineBoot,
      epoch: this.#options.epoch,
    };
    await Deno.mkdir(dirname(this.file), { recursive: true });
    const temporary = `${this.file}.${this.engineBoot}`;
    await Deno.writeTextFile(temporary, JSON.stringify(content) + "\n", { mode: 0o600 });
    await Deno.rename(temporary, this.file);
    this.#announced = true;
  }

  async #removeFile(): Promise<void> {
    try {
      const content = JSON.parse(await Deno.readTextFile(this.file)) as HubFile;
      if (content.engine_boot === this.engineBoot) await Deno.remove(this.file);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound || error instanceof SyntaxError)) throw error;
    }
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refusal = this.#refusal(request);
    if (refusal) {
      socket.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#opened(opened));
  }

  /** A browser's page sends an Origin and may reach loopback by a name of its own: both are refused. */
  #refusal(request: IncomingMessage): string | null {
    const { authorization, origin, host } = request.headers;
    if (!sameSecret(authorization ?? "", `Bearer ${this.token}`)) return "401 Unauthorized";
    if (origin !== undefined || !this.#hosts.includes(host ?? "")) return "403 Forbidden";
    if (request.url !== "/agent") return "404 Not Found";
    if (this.#left || this.#sockets.clients.size >= SOCKETS_MAX) return "503 Service Unavailable";
    return null;
  }

  #opened(socket: WebSocket): void {
    let link: AgentLink | null = null;
    const greeted = new AbortController();
    const late = AbortSignal.any([greeted.signal, this.#ended.signal]);
    this.#options.clock.sleep(HELLO_MS, late).then(() => socket.close(1008, "no hello"), () => {});
    socket.on("message", (raw, binary) => {
      const data = bytesOf(raw);
      if (link) return link.receive(socket, data, binary);
      greeted.abort();
      link = this.#greet(socket, data, binary);
    });
    socket.on("close", () => {
      greeted.abort();
      link?.detach(socket);
    });
    socket.on("error", () => socket.terminate()); // Too large a frame, or a broken pipe: the agent connects again.
  }

  #greet(socket: WebSocket, data: Uint8Array, binary: boolean): AgentLink | null {
    this.#options.onFrame("other");
    const hello = binary ? null : parseHello(data);
    if (!hello) {
      socket.close(1008, "the first frame must be a hello");
      return null;
    }
    if (hello.protocol !== PROTOCOL_VERSION) {
      socket.close(1008, `protocol ${hello.protocol} is spoken, ${PROTOCOL_VERSION} is wanted`);
      return null;
    }
    const link = this.#links.get(hello.agent_id);
    if (!link?.admits(hello)) {
      this.#drop(socket);
      return null;
    }
    link.attach(socket, hello);
    return link;
  }

  /** The agent of another engine's boot, or one that was given up: it must kill its ranks and end. */
  #drop(socket: WebSocket): void {
    const { run, epoch, heartbeatMs } = this.#options;
    const welcome = {
      type: "welcome",
      epoch,
      engine_boot: this.engineBoot,
      run,
      heartbeat_ms: heartbeatMs,
      grace_ms: 0,
    };
    socket.send(JSON.stringify({ ...welcome, received_seq: 0, verdict: "drop", tasks: [] }));
    socket.close(1000, "drop");
  }
}

function parseHello(data: Uint8Array): Hello | null {
  try {
    const message = AgentMessage.parse(JSON.parse(new TextDecoder().decode(data)));
    return message.type === "hello" ? message : null;
  } catch {
    return null; // The socket is closed for it: nothing that is not a hello is worth a word more.
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
