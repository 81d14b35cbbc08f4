import { appendFileSync, closeSync, fsyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { InfrastructureError, InvalidInputError, PRIVATE_FILE } from "../../engine/mod.ts";

export const FAULT_KINDS = ["kill", "stop", "drop", "disk_full", "oom"] as const;
/** Places without ranks. The roles of workers are places too. */
export const FAULT_PLACES = ["engine", "agent"] as const;
export const FAULT_EVENTS = ["append", "frame", "op", "micro_batch"] as const;
type FaultKind = typeof FAULT_KINDS[number];
type FaultEvent = typeof FAULT_EVENTS[number];

/** `n` counts from the start of each process, from 1. Without a rank (null) a fault is rank 0's. */
export type Fault = {
  kind: FaultKind;
  place: string;
  rank: number | null;
  event: FaultEvent;
  n: number;
};

type FaultOptions = {
  /** HOME/runs/RUN/faults: one marker file for each fault that has fired. */
  dir: string;
  place: string;
  /**
   * Roles of workers, which are places too. Their faults are parsed here and fire in the workers.
   */
  roles?: readonly string[];
  rank?: number;
  /** Carries out a kill or a stop, by default on this process. */
  kill?: (kind: "kill" | "stop") => void;
  /** The file that takes one JSON line for each event; HOLDFAST_EVENTS by default. */
  events?: string;
};

/**
 * What the caller does next. `drop`: behave as if the event were lost (a frame not sent, a
 * connection closed).
 */
type FaultVerdict = "go" | "drop";

const GRAMMAR = "KIND:PLACE[.RANK]@EVENT:N[,...], as in kill:trainer.1@op:17";

/**
 * Reads `HOLDFAST_FAULT`. @throws {InvalidInputError} Naming the wrong part and the allowed values.
 */
export function parseFaults(text: string | undefined, roles: readonly string[] = []): Fault[] {
  if (text === undefined || text.trim() === "") return [];
  return text.split(",").map((part) => parseFault(part.trim(), roles));
}

function parseFault(text: string, roles: readonly string[]): Fault {
  const match = /^([^:@.]*):([^:@.]*)(?:\.([^:@]*))?@([^:@]*):([^:@]*)$/.exec(text);
  if (!match) throw malformed(text, `it is not of the form ${GRAMMAR}`);
  const [, kind, place, rank, event, n] = match;
  if (kind === "oom" && (FAULT_PLACES as readonly string[]).includes(place!)) {
    throw malformed(
      text,
      `'${place}' has no device whose memory could run out: use ${roles.join(" or ")}`,
    );
  }
  return {
    kind: oneOf(text, { name: "kind", value: kind!, allowed: FAULT_KINDS }),
    place: oneOf(text, { name: "place", value: place!, allowed: [...FAULT_PLACES, ...roles] }),
    rank: rank === undefined ? null : whole(text, { name: "rank", value: rank, min: 0 }),
    event: oneOf(text, { name: "event", value: event!, allowed: FAULT_EVENTS }),
    n: whole(text, { name: "count", value: n!, min: 1 }),
  };
}

function oneOf<T extends string>(
  text: string,
  field: { name: string; value: string; allowed: readonly T[] },
): T {
  const found = field.allowed.find((allowed) => allowed === field.value);
  if (found) return found;
  throw malformed(
    text,
    `its ${field.name} is '${field.value}': it must be one of ${field.allowed.join(", ")}`,
  );
}

function whole(text: string, field: { name: string; value: string; min: number }): number {
  const value = Number(field.value);
  if (/^\d+$/.test(field.value) && Number.isSafeInteger(value) && value >= field.min) return value;
  throw malformed(
    text,
    `its ${field.name} is '${field.value}': it must be a whole number from ${field.min}`,
  );
}

function malformed(text: string, why: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot use fault '${text}' of HOLDFAST_FAULT because ${why}. Grammar: ${GRAMMAR}`,
    {
      fault: text,
    },
  );
}

/** The inverse of `parseFaults`, and the name of the fault's marker file. */
export function printFault({ kind, place, rank, event, n }: Fault): string {
  return `${kind}:${place}${rank === null ? "" : `.${rank}`}@${event}:${n}`;
}

/**
 * Faults on purpose: kill points that are events, not times, so that a failing seed reproduces with
 * one command.
 */
export class Faults {
  readonly #faults: Fault[];
  readonly #options: FaultOptions;
  readonly #counts: Record<FaultEvent, number> = { append: 0, frame: 0, op: 0, micro_batch: 0 };
  readonly #events: string | undefined;

  private constructor(faults: Fault[], options: FaultOptions) {
    const rank = options.rank ?? 0;
    this.#faults = faults.filter((fault) =>
      fault.place === options.place && (fault.rank ?? 0) === rank
    );
    this.#options = options;
    this.#events = options.events ?? Deno.env.get("HOLDFAST_EVENTS");
  }

  /** Keeps the faults of this place (and rank). `text` is the value of HOLDFAST_FAULT. */
  static parse(text: string | undefined, options: FaultOptions): Faults {
    return new Faults(parseFaults(text, options.roles), options);
  }

  /**
   * Counts one event, and carries out the fault that waits for it, at most once per run.
   * @param phase generation, publication, training, checkpoint or other: what the event is part of.
   * @throws {InfrastructureError} For `disk_full`, as a full disk would.
   */
  at(event: FaultEvent, phase = "other"): FaultVerdict {
    const n = ++this.#counts[event];
    if (this.#events) {
      const { place, rank = 0 } = this.#options;
      appendFileSync(this.#events, `${JSON.stringify({ place, rank, event, n, phase })}\n`);
    }
    let verdict: FaultVerdict = "go";
    for (const fault of this.#faults) {
      if (fault.event === event && fault.n === n && this.#mark(fault)) verdict = this.#fire(fault);
    }
    return verdict;
  }

  #fire(fault: Fault): FaultVerdict {
    if (fault.kind === "drop") return "drop";
    if (fault.kind === "disk_full") {
      throw new InfrastructureError(
        `Cannot write because the disk is full: fault '${
          printFault(fault)
        }' of HOLDFAST_FAULT, on purpose`,
        { fault: printFault(fault) },
        { retryable: false },
      );
    }
    if (fault.kind !== "oom") (this.#options.kill ?? signalSelf)(fault.kind);
    return "go";
  }

  /** True for the one process that creates the marker; it is on the disk before the fault fires. */
  #mark(fault: Fault): boolean {
    const { dir } = this.#options;
    mkdirSync(dir, { recursive: true });
    let file: number;
    try {
      file = openSync(`${dir}/${printFault(fault)}`, "wx", PRIVATE_FILE);
    } catch (error) {
      if ((error as { code?: string }).code === "EEXIST") return false;
      throw error;
    }
    writeSync(file, `${JSON.stringify({ pid: Deno.pid })}\n`);
    fsyncSync(file);
    closeSync(file);
    const folder = openSync(dir, "r");
    fsyncSync(folder);
    closeSync(folder);
    return true;
  }
}

function signalSelf(kind: "kill" | "stop"): void {
  Deno.kill(Deno.pid, kind === "kill" ? "SIGKILL" : "SIGSTOP");
}
