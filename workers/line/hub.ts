import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../engine/mod.ts";
import { AgentLink, type Hello } from "./agent_link.ts";
import { type DoorSocket, type HubDoor, WebSocketDoor } from "./hub_door.ts";
import type { Phase } from "../roles/role.ts";
import { AgentMessage, PROTOCOL_VERSION } from "./protocol.ts";
import { PREEMPT_GRACE_S } from "../workers_config.ts";

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
  heartbeat_ms?: number;
  /** An agent that has no engine for this long kills its ranks and ends. */
  grace_ms?: number;
  /** An agent that receives SIGTERM reports it and ends after this long. */
  preempt_grace_ms?: number;
  /** Fault tests count frames by this. */
  onFrame?: (phase: Phase) => void;
  /** Instead of a WebSocket server: for simulations. */
  door?: HubDoor;
};

type Settings = Required<Omit<HubOptions, "host" | "port" | "door">>;

/**
 * The server that agents connect to. It admits agents that know the run's token and that `expect`
 * announced. All others receive `drop`.
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

  /** Calls `listen`, then `announce`. */
  static async start(options: HubOptions): Promise<Hub> {
    const hub = await Hub.listen(options);
    await hub.announce();
    return hub;
  }

  /** Listens. Agents find the hub only after `announce`, so that `expect` can name them first. */
  static async listen(options: HubOptions): Promise<Hub> {
    const hub = new Hub({
      clock: systemClock,
      heartbeat_ms: 1000,
      grace_ms: 2000,
      preempt_grace_ms: PREEMPT_GRACE_S * 1000,
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
   * Admits an agent. Unless it is `adopted`, this must be its first engine. The link accepts
   * messages immediately and delivers them when the agent connects.
   */
  expect(agent_id: string, { adopted = false }: { adopted?: boolean } = {}): AgentLink {
    const { run, epoch, clock, heartbeat_ms, grace_ms, preempt_grace_ms, onFrame } = this.#options;
    const link = new AgentLink({
      agent_id,
      run,
      epoch,
      engine_boot: this.engineBoot,
      clock,
      heartbeat_ms,
      grace_ms,
      preempt_grace_ms,
      adopted,
      onFrame,
    });
    this.#links.set(agent_id, link);
    return link;
  }

  /**
   * Closes the socket of an agent that is no longer needed. If it reconnects, it receives `drop`.
   */
  forget(agent_id: string): void {
    this.#links.get(agent_id)?.close();
    this.#links.delete(agent_id);
  }

  /**
   * The epoch of an engine that has announced itself instead of this one; null if none has. Reads
   * the file now; what it said before `announce` belongs to this engine's predecessors in the
   * store.
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
    for (const agent_id of [...this.#links.keys()]) this.forget(agent_id);
    this.#door.terminate();
  }

  /**
   * Closes every connection. `keep_file` if another engine has taken over the run: the file belongs
   * to that engine.
   */
  async close({ keep_file = false }: { keep_file?: boolean } = {}): Promise<void> {
    this.#ended.abort(new Error("the hub is closed"));
    for (const agent_id of [...this.#links.keys()]) this.forget(agent_id);
    await this.#door.close();
    if (!keep_file && this.#door.announced()?.engine_boot === this.engineBoot) {
      await this.#door.withdraw();
    }
  }

  /** Agents of the run connect from now on. */
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
      socket.close(
        1008,
        `it speaks protocol ${hello.protocol}, but ${PROTOCOL_VERSION} is ` +
          `required`,
      );
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
    const { run, epoch, heartbeat_ms } = this.#options;
    const welcome = {
      type: "welcome",
      epoch,
      engine_boot: this.engineBoot,
      run,
      heartbeat_ms,
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
    return null; // A first message that is no hello only closes the socket.
  }
}
