import { pathToFileURL } from "node:url";
import { InvalidInputError, type ServeEvent } from "../engine/mod.ts";
import { DEFAULT_QUEUE, endOwnWorkers, type Home, serveRuns } from "../runs/mod.ts";
import { visibleGpus } from "../workers/mod.ts";
import { afterFailure } from "./after_failure.ts";
import { EXIT } from "./exit.ts";
import { failureText } from "./failure_text.ts";
import { LiveView } from "./live.ts";
import { command, errorScreen, type Screen } from "./output.ts";
import { warnIfUntrained } from "./run_end.ts";
import { preemptGraceS, RunGraces, StopRequests } from "./stop_requests.ts";

export type ServeFlags = {
  queue?: string[];
  concurrency: number;
  slots?: string[];
  entry?: string[];
  leaseS: number;
  pollS: number;
  untilIdle?: boolean;
};

/**
 * `serve`: executes queued runs until it is stopped, or until none is left. Returns the exit code.
 */
export async function serveCommand(home: Home, flags: ServeFlags): Promise<number> {
  const screen = errorScreen();
  const note = (text: string) => screen.write(`${text}\n`);
  const queues = countsOf(flags.queue ?? [DEFAULT_QUEUE], "--queue", Infinity);
  const slots = { gpu: visibleGpus().length, ...countsOf(flags.slots ?? [], "--slots") };
  const graces = new RunGraces();
  const graceS = () => preemptGraceS(graces.longest());
  graceS(); // Reports a bad environment variable at the start.
  const stopping = "stopping every run at its next durable point";
  const texts = {
    draining: () => `${stopping}, for another engine to resume; Ctrl-C again stops immediately`,
    preempted: (s: number) => `SIGTERM: ${stopping} and saving the policies; hard stop in ${s} s`,
    at_once: () => "stopped immediately",
    grace_over: (s: number) => `stopped immediately, ${s} s after SIGTERM`,
  };
  const requests = new StopRequests({
    graceS,
    note: (what, s) => note(texts[what](s)),
    exit: () => void endOwnWorkers(home).finally(() => Deno.exit(EXIT.interrupted)),
  });
  const release = requests.listen();
  const teller = new ServeTeller(home, note);
  note(`serving ${Object.keys(queues).join(", ")}, ${flags.concurrency} at once, pid ${Deno.pid}`);
  try {
    await serveRuns(home, {
      queues,
      slots,
      concurrency: flags.concurrency,
      entries: (flags.entry ?? []).map((path) => pathToFileURL(path).href),
      lease_ms: flags.leaseS * 1000,
      poll_ms: flags.pollS * 1000,
      until_idle: flags.untilIdle,
      drain: requests.drain,
      onEvent: (event) => {
        if (event.type === "ended" || event.type === "put_off") graces.ended(event.run);
        teller.on(event);
      },
      session: ({ id, config }) => {
        graces.begun(id, JSON.parse(config));
        const live = new LiveView({ screen: prefixed(screen, id), now: () => performance.now() });
        return {
          preempted: requests.preempted,
          onEvent: (event) => live.on(event),
          onWorkers: (event) => live.onWorkers(event),
          onSetup: (progress) => live.setup(progress),
        };
      },
    });
    await teller.told();
  } finally {
    release();
  }
  return EXIT.done;
}

/** Prints what happens to the runs. */
export class ServeTeller {
  readonly #home: Home;
  readonly #note: (text: string) => void;
  readonly #ends = new Set<Promise<void>>();
  #trouble = "";

  constructor(home: Home, note: (text: string) => void) {
    this.#home = home;
    this.#note = note;
  }

  /** Prints each problem once: an unreachable store is tried every second. */
  on(event: ServeEvent): void {
    if (event.type !== "trouble") this.#trouble = "";
    else if (event.reason !== this.#trouble) {
      this.#note(`the store is unavailable, retrying: ${this.#trouble = event.reason}`);
    }
    const line = lineOf(event, this.#home);
    if (line) this.#note(line);
    if (event.type !== "ended") return;
    const { run } = event;
    const end = this.#afterEnd(event).catch(({ message }) => this.#tell(run, `no advice found: ${message}`));
    this.#ends.add(end);
    void end.then(() => this.#ends.delete(end));
  }

  /** Resolves once everything is printed. */
  async told(): Promise<void> {
    await Promise.all(this.#ends);
  }

  /**
   * Prints what `run` prints after a run's end: how to resume or fork a failed run, and whether it
   * trained nothing.
   */
  async #afterEnd({ run, status, error }: ServeEvent & { type: "ended" }): Promise<void> {
    if (status !== "failed" && status !== "done") return;
    const head = await this.#home.store.head(run);
    if (head === null) return;
    if (status === "done") await warnIfUntrained(this.#home, head, (text) => this.#tell(run, text));
    else if (error) this.#tell(run, await afterFailure(this.#home, { head, error }));
  }

  /** Lines of other runs may come between these. */
  #tell(run: string, text: string): void {
    this.#note(withRun(run, text));
  }
}

function lineOf(event: ServeEvent, home: Home): string | null {
  switch (event.type) {
    case "taken":
      if (event.from === null) return `${event.run}  taken`;
      return `${event.run}  taken over from engine ${event.from.pid} on ${event.from.host}`;
    case "ended":
      if (event.status === "failed" && event.error) {
        return `${event.run}  failed: ${failureText(event.error, { run: event.run, home })}`;
      }
      return `${event.run}  ${ENDINGS[event.status]}`;
    case "refused":
      return `${event.run}  skipped: ${event.reason}`;
    case "put_off":
      return `${event.run}  postponed, retrying in ${event.ms / 1000} s: ${event.reason}`;
    case "trouble":
      return null;
  }
}

const ENDINGS = {
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "released",
  fenced: "taken over by another engine; stopped here without touching anything",
};

/** Puts the run's id before each line. */
function withRun(run: string, text: string): string {
  return text.replace(/^(?=.)/gm, `${run}  `);
}

/** A screen for one run among others: no redrawing, the run's id before each line. */
function prefixed(screen: Screen, run: string): Screen {
  return {
    ...{ tty: false, color: screen.color, columns: screen.columns },
    write: (text) => screen.write(withRun(run, text)),
  };
}

/** Reads `NAME=N` texts. `without`: what a bare NAME means, if it may stand alone. */
export function countsOf(texts: string[], option: string, without?: number): Record<string, number> {
  return Object.fromEntries(texts.map((text) => {
    const [, name, count] = /^([A-Za-z0-9_.-]+)(?:=(\d+))?$/.exec(text) ?? [];
    if (name !== undefined && count !== undefined) return [name, Number(count)];
    if (name !== undefined && without !== undefined) return [name, without];
    const form = without === undefined ? "NAME=N" : "NAME or NAME=N";
    throw new InvalidInputError(`Cannot use '${text}' for ${option}: give ${form}, N a whole number`, { option, text });
  }));
}

/** Describes a queued run and how to serve it. */
export function queuedText(home: Home, run: { id: string; queue: string }): string {
  const serve = `serve${run.queue === DEFAULT_QUEUE ? "" : ` --queue ${run.queue}`}`;
  return `run ${run.id} is in queue '${run.queue}'. Start an engine with: ${command(home, serve)}`;
}
