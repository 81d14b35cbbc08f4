import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../engine/mod.ts";
import { AgentLink, type Hello } from "./agent_link.ts";
import { type DoorSocket, type HubDoor, WebSocketDoor } from "./hub_door.ts";
import type { Phase } from "./roles/role.ts";
import { AgentMessage, PROTOCOL_VERSION } from "./protocol.ts";
import { PREEMPT_GRACE_S } from "./workers_config.ts";

const HELLO_MS = 10_000;

type HubOptions = {
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
  /** An agent that gets SIGTERM says so, and ends after this long. */
  preemptGraceMs?: number;
  /** Fault tests count frames by this. */
  onFrame?: (phase: Phase) => void;
  /** Instead of a WebSocket server: for simulations. */
  door?: HubDoor;
};

type Settings = Required<Omit<HubOptions, "host" | "port" | "door">>;

/**
 * What agents connect back to. Of those who know the run's token, only agents that `expect` announced are let in, everybody
 * else receives `drop`.
 */
export class Hub {
  readonly engineBoot = randomBytes(8).toString("hex");
  readonly token = randomBytes(32).toString("hex");
  readonly file: string;
  #options: Settings;
  #door: HubDoor;
  #links = new Map<string, AgentLink>();
  #url = "";
  #announced = false;
  #ended = new AbortController();

  private constructor({ host = "127.0.0.1", port = 0, door, ...options }: Settings & HubOptions) {
    const { run, file, clock } = options;
    this.#options = options;
    this.file = file;
    this.#door = door ?? new WebSocketDoor({ run, file, token: this.token, host, port, clock });
  }

  /** Listens and says so: `listen`, then `announce`. */
  static async start(options: HubOptions): Promise<Hub> {
    const hub = await Hub.listen(options);
    await hub.announce();
    return hub;
  }

  /**
   * Listens. No agent knows it before `announce`, so that those that are to come can be named to
   * `expect` first.
   */
  static async listen(options: HubOptions): Promise<Hub> {
    const hub = new Hub({
      clock: systemClock,
      heartbeatMs: 1000,
      graceMs: 2000,
      preemptGraceMs: PREEMPT_GRACE_S * 1000,
      onFrame: () => {},
      ...options,
    });
    hub.#url = await hub.#door.open((socket) => hub.#opened(socket));
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
    const { run, epoch, clock, heartbeatMs, graceMs, preemptGraceMs, onFrame } = this.#options;
    const link = new AgentLink({
      agentId,
      run,
      epoch,
      engineBoot: this.engineBoot,
      clock,
      heartbeatMs,
      graceMs,
      preemptGraceMs,
      adopted,
      onFrame,
    });
    this.#links.set(agentId, link);
    return link;
  }

  /**
   * The agent is not wanted any more: its socket is closed, and told to `drop` if it comes again.
   */
  forget(agentId: string): void {
    this.#links.get(agentId)?.close();
    this.#links.delete(agentId);
  }

  /**
   * The epoch of an engine that has announced itself in place of this one; null if none has. Reads the file now; what it
   * said before `announce` is of engines that the store had this one follow.
   */
  supersededBy(): number | null {
    const announced = this.#announced ? this.#door.announced() : null;
    if (announced === null || announced.engine_boot === this.engineBoot) return null;
    return announced.epoch > this.#options.epoch ? announced.epoch : null;
  }

  /**
   * Drops every connection and stops answering, so that no agent is asked to end: they may serve
   * another engine.
   */
  leave(): void {
    for (const agentId of [...this.#links.keys()]) this.forget(agentId);
    this.#door.terminate();
  }

  /**
   * Closes every connection. `keepFile` when another engine has taken the run over: the file is its
   * own.
   */
  async close({ keepFile = false }: { keepFile?: boolean } = {}): Promise<void> {
    this.#ended.abort(new Error("the hub is closed"));
    for (const agentId of [...this.#links.keys()]) this.forget(agentId);
    await this.#door.close();
    if (!keepFile && this.#door.announced()?.engine_boot === this.engineBoot) await this.#door.withdraw();
  }

  /** Agents of the run come from now on. */
  async announce(): Promise<void> {
    const { engineBoot: engine_boot, token } = this;
    await this.#door.announce({ url: this.#url, token, engine_boot, epoch: this.#options.epoch });
    this.#announced = true;
  }

  #opened(socket: DoorSocket): void {
    let link: AgentLink | null = null;
    const greeted = new AbortController();
    const late = AbortSignal.any([greeted.signal, this.#ended.signal]);
    this.#options.clock.sleep(HELLO_MS, late).then(() => socket.close(1008, "no hello"), () => {});
    socket.listen({
      frame: (data, binary) => {
        if (link) return link.receive(socket, data, binary);
        greeted.abort();
        link = this.#greet(socket, data, binary);
      },
      broken: (reason) => link?.broken(socket, reason),
      closed: () => {
        greeted.abort();
        link?.detach(socket);
      },
    });
  }

  #greet(socket: DoorSocket, data: Uint8Array, binary: boolean): AgentLink | null {
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

  /**
   * The agent of another engine's boot, or one that was given up: it must kill its ranks and end.
   */
  #drop(socket: DoorSocket): void {
    const { run, epoch, heartbeatMs } = this.#options;
    const welcome = {
      type: "welcome",
      epoch,
      engine_boot: this.engineBoot,
      run,
      heartbeat_ms: heartbeatMs,
      grace_ms: 0,
      preempt_grace_ms: 0,
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
