/**
 * A network between simulated processes: the doors of engines' hubs, the lines of agents, and the
 * file that tells an agent where to go. Frames of one socket arrive in order, some time later;
 * sockets are cut, or go silent without anybody being told.
 */
import type { SimulatedProcess, SimulatedWorld } from "./simulation.ts";
import type {
  AgentLine,
  DoorSocket,
  HubDoor,
  HubFile,
  LineListener,
  LineSocket,
  SocketListener,
} from "../workers/mod.ts";

type Listening = { process: SimulatedProcess; opened: (socket: DoorSocket) => void };

/**
 * Sockets between simulated engines and agents: frames take time, and connections are cut on
 * purpose.
 */
export class SimulatedNetwork {
  /** The contents of `hub.json`. */
  file: HubFile | null = null;
  readonly #listening = new Map<string, Listening>();
  readonly #connections = new Set<Connection>();
  #ports = 0;

  /** A frame takes between the two latencies, one way, in milliseconds. */
  constructor(
    readonly world: SimulatedWorld,
    readonly latency_ms: readonly [number, number] = [0, 3],
  ) {}

  /** For a hub that runs in this process. */
  door(process: SimulatedProcess): HubDoor {
    const url = `simulated://${++this.#ports}`;
    const terminate = () => {
      this.#listening.delete(url);
      for (const connection of this.#connections) {
        if (connection.url === url) connection.close(connection.door);
      }
    };
    return {
      open: (opened) => {
        this.#listening.set(url, { process, opened });
        return Promise.resolve(url);
      },
      announce: async (content) => {
        await process.clock.sleep(this.latency());
        this.world.trace(`${process.name} announces epoch ${content.epoch}`);
        this.file = content;
      },
      announced: () => this.file,
      withdraw: () => {
        this.file = null;
        return Promise.resolve();
      },
      terminate,
      close: () => Promise.resolve(terminate()),
    };
  }

  /** For an agent that runs in this process. */
  line(process: SimulatedProcess): AgentLine {
    return {
      hub: () => this.file,
      connect: ({ url }, listener) => this.#connect(process, { url, listener }),
    };
  }

  #connect(
    process: SimulatedProcess,
    { url, listener }: { url: string; listener: LineListener },
  ): LineSocket {
    const connection = new Connection(this, url);
    this.#connections.add(connection);
    const end = connection.line;
    Object.assign(end, { process, heard: listener.frame, closed: listener.closed });
    this.world.schedule(this.latency(), `${process.name} connects to ${url}`, () => {
      const listening = this.#listening.get(url);
      if (!listening || listening.process.state === "dead") {
        return connection.close(connection.door);
      }
      listening.process.deliver("accepts", () => {
        if (end.state === "closed") return;
        listening.opened(connection.accept(listening.process));
        process.schedule(this.latency(), `${process.name} is connected`, () => {
          if (end.state === "closed") return;
          end.state = "open";
          listener.open();
        });
      });
    });
    return {
      get isOpen() {
        return end.state === "open";
      },
      send: (frame) => connection.carry(end, frame),
      terminate: () => connection.close(end),
    };
  }

  /** A connection that is open, drawn at random. */
  #some(): Connection | null {
    const open = [...this.#connections].filter(({ line }) => line.state === "open");
    return open.length > 0 ? this.world.pick(open) : null;
  }

  /** Cuts a connection: messages in flight are lost, and both ends notice. */
  cut(): void {
    const connection = this.#some();
    this.world.trace(`a socket is cut: ${connection?.url ?? "there is none"}`);
    connection?.cut();
  }

  /** What one end sends from now on is lost, and neither end notices. */
  silence(): void {
    const connection = this.#some();
    this.world.trace(`a socket goes silent: ${connection?.url ?? "there is none"}`);
    if (connection) connection.silent = true;
  }

  /** A connection that is closed is cut no more. */
  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  /** How long the next frame takes, in milliseconds. */
  latency(): number {
    return this.world.between(...this.latency_ms);
  }
}

/** One end of a connection. */
class End {
  state: "opening" | "open" | "closed" = "opening";
  /** When the last frame to it arrives: the next comes later. */
  last_ms = 0;
  process: SimulatedProcess | undefined;
  heard: (data: string | Uint8Array) => void = () => {};
  closed: () => void = () => {};
}

/** @internal */
class Connection {
  readonly line = new End();
  readonly door = new End();
  silent = false;
  #cut = false;

  constructor(readonly network: SimulatedNetwork, readonly url: string) {}

  accept(process: SimulatedProcess): DoorSocket {
    const { door } = this;
    Object.assign(door, { process, state: "open" });
    for (const end of [this.line, door]) end.process!.onDeath(() => this.close(end));
    return {
      bufferedAmount: 0,
      send: (data) => this.carry(door, data),
      close: () => this.close(door),
      listen: ({ frame, closed }: SocketListener) => {
        const heard = (data: string | Uint8Array) =>
          typeof data === "string"
            ? frame(new TextEncoder().encode(data), false)
            : frame(data, true);
        Object.assign(door, { heard, closed });
      },
    };
  }

  carry(from: End, data: string | Uint8Array): void {
    if (from.state !== "open") return;
    this.#send(this.#other(from), (to) => to.heard(data));
  }

  /** This end goes; the other hears of it after what was sent before. */
  close(end: End): void {
    if (end.state === "closed") return;
    const { world } = this.network;
    end.state = "closed";
    end.process?.schedule(this.network.latency(), "a socket is closed here", () => end.closed());
    const other = this.#other(end);
    this.#send(other, () => this.#closed(other));
    if (this.silent) world.trace("nobody hears of it");
    this.network.forget(this);
  }

  cut(): void {
    this.#cut = true;
    for (const end of [this.line, this.door]) {
      end.process?.schedule(this.network.latency(), "a socket was cut", () => this.#closed(end));
    }
    this.network.forget(this);
  }

  #closed(end: End): void {
    if (end.state === "closed") return;
    end.state = "closed";
    end.closed();
  }

  #send(to: End, hear: (to: End) => void): void {
    const { world } = this.network;
    const due_ms = Math.max(to.last_ms + 1e-6, world.time_ms + this.network.latency());
    to.last_ms = due_ms;
    if (this.silent || this.#cut) return;
    to.process?.schedule(due_ms - world.time_ms, "a frame arrives", () => {
      if (!this.#cut && to.state !== "closed") hear(to);
    });
  }

  #other(end: End): End {
    return end === this.line ? this.door : this.line;
  }
}
