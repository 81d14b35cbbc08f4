import { pathToFileURL } from "node:url";
import { recordedField } from "../../engine/mod.ts";
import { abandonOwnRuns, DEFAULT_QUEUE, type Home, serveRuns } from "../../runs/mod.ts";
import { visibleGpus } from "../../workers/mod.ts";
import { flag, list, whole } from "../options.ts";
import { defineVerb } from "../verb.ts";
import { EXIT } from "../exit.ts";
import { LiveView } from "../display/live.ts";
import { errorScreen, type Screen } from "../display/output.ts";
import { countsOf } from "../queued.ts";
import { ServeTeller, withRun } from "../display/serve_teller.ts";
import { preemptGraceS, RunGraces, StopRequests } from "../stop_requests.ts";
import { visible } from "../display/visible.ts";

/** `serve`: executes queued runs until it is stopped, or until none is left. */
export const serveVerb = defineVerb({
  name: "serve",
  about: "execute queued runs until stopped; several engines can share a store",
  arguments: {},
  options: {
    queue: list("<name[=n]>", "a queue to serve; n limits its concurrent runs across all engines"),
    concurrency: whole("<n>", "concurrent runs on this engine", { default: 1 }),
    slots: list("<name=n>", "slots of this host (default: gpu, one per visible GPU)"),
    entry: list("<file>", "a module with the graphs of runs that were created elsewhere"),
    lease_s: whole("<s>", "an engine that is silent for this long loses its runs", { default: 15 }),
    poll_s: whole("<s>", "seconds between checks of the queues", { default: 1 }),
    until_idle: flag("exit once every run this engine can execute has ended"),
  },
  action: ({ flags, globals }) => globals.withHome((home) => serve(home, flags)),
});

type ServeFlags = {
  queue?: string[];
  concurrency: number;
  slots?: string[];
  entry?: string[];
  lease_s: number;
  poll_s: number;
  until_idle?: boolean;
};

/** Returns the exit code. */
async function serve(home: Home, flags: ServeFlags): Promise<number> {
  const screen = errorScreen();
  const note = (text: string) => screen.write(`${visible(text)}\n`);
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
    exit: () => abandonOwnRuns(home).finally(() => Deno.exit(EXIT.interrupted)),
  });
  const release = requests.listen();
  const quiet = requests.quietAtTheEnd(screen);
  const teller = new ServeTeller(home, (text) => quiet.write(`${visible(text)}\n`));
  note(`serving ${Object.keys(queues).join(", ")}, ${flags.concurrency} at once, pid ${Deno.pid}`);
  try {
    await serveRuns(home, {
      queues,
      slots,
      concurrency: flags.concurrency,
      entries: (flags.entry ?? []).map((path) => pathToFileURL(path).href),
      lease_ms: flags.lease_s * 1000,
      poll_ms: flags.poll_s * 1000,
      until_idle: flags.until_idle,
      drain: requests.drain,
      onEvent: (event) => {
        if (event.type === "ended" || event.type === "put_off") graces.ended(event.run);
        teller.on(event);
      },
      session: (head) => {
        const { id } = head;
        graces.begun(id, recordedField(head, "config"));
        const live = new LiveView({
          screen: prefixed(quiet, id),
          now: () => performance.now(),
          stop: requests.drain,
        });
        return {
          preempted: requests.preempted,
          onEvent: (event) => live.on(event),
          onWorkers: (event) => live.onWorkers(event),
          onSetup: (progress) => live.setup(progress),
        };
      },
    });
    await teller.printed();
  } finally {
    await requests.exiting;
    release();
  }
  return EXIT.done;
}

/** A screen for one run among others: no redrawing, the run's id before each line. */
function prefixed(screen: Screen, run: string): Screen {
  return {
    tty: false,
    color: screen.color,
    columns: screen.columns,
    rows: screen.rows,
    write: (text) => screen.write(withRun(run, text)),
  };
}
