import { type Clock, InfrastructureError, systemClock } from "../../engine/mod.ts";
import type { Place } from "./create_once.ts";
import { type CommandOutcome, runCommand } from "../processes/run_command.ts";

/** A message while an environment is created. `passing`: the next message replaces it. */
export type EnvironmentProgress = { text: string; passing: boolean };
/** Receives the progress of a Python environment. */
export type OnEnvironmentProgress = (progress: EnvironmentProgress) => void;

/** How often a long step reports what it does. */
const SAY_MS = 5_000;

/** Last lines of a failed step that its error shows. */
const LINES_SHOWN = 8;

/** For a disk that is full. */
export const ROOM_FIX = "free some space, or set HOLDFAST_ENV_DIR to a directory on another disk";

/** What a step's output says about its failure, and the fix. The first match counts. */
const FIXES: [RegExp, string][] = [
  [
    /ensurepip|No module named venv/,
    "install Python's venv module: on Debian and Ubuntu, python3-venv",
  ],
  [/no space left|disk quota/i, ROOM_FIX],
  [
    /certificate|\bssl/i,
    "if your network uses its own certificates, name their file: `pip config set global.cert " +
    "FILE`, or SSL_CERT_FILE",
  ],
  [
    /hash mismatch|hashes? .*match/i,
    "your package index serves files that differ from the locked ones: name one that mirrors " +
    "PyPI, `pip config set global.index-url URL`",
  ],
  [
    /dns|connect|network|timed out|resolve host|retries|no matching distribution|no solution/i,
    "check the network; behind a mirror or proxy, name it: `pip config set global.index-url " +
    "URL`, `global.proxy URL`",
  ],
];
const OTHER_FIX = "read the log, then run the same command again";

type StepOptions = {
  /** The complete environment. */
  env?: Record<string, string>;
  onLine?: (line: string) => void;
  doing?: () => string;
};

/** How to stop the creation of an environment, and who receives its progress. */
export type MakingOptions = {
  signal?: AbortSignal;
  clock?: Clock;
  onProgress?: OnEnvironmentProgress;
};

/**
 * The steps that create one environment. Each step is logged completely, reports every few seconds
 * what it does, and fails with its cause.
 */
export class Creation {
  readonly name: string;
  readonly #log: string;
  readonly #options: MakingOptions;
  #logged = false;

  constructor({ name, path }: Place, options: MakingOptions) {
    this.name = name;
    this.#log = `${path}.log`;
    this.#options = options;
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal;
  }

  /** The steps of another environment, which this one needs. */
  of(place: Place): Creation {
    return new Creation(place, this.#options);
  }

  say(text: string, passing = false): void {
    this.#options.onProgress?.({ text: `Python environment '${this.name}': ${text}`, passing });
  }

  /** Runs a command; its failure is an outcome. */
  async try(argv: string[], { env, onLine, doing }: StepOptions = {}): Promise<CommandOutcome> {
    this.#write(`$ ${argv.join(" ")}`);
    const ended = new AbortController();
    const saying = doing ? this.#sayOften(doing, ended.signal) : Promise.resolve();
    try {
      return await runCommand(argv, {
        env,
        clear_env: env !== undefined,
        signal: this.#options.signal,
        onLine: (line) => {
          this.#write(line);
          onLine?.(line);
        },
      });
    } finally {
      ended.abort();
      await saying;
    }
  }

  /**
   * Runs a command. @throws {InfrastructureError} If it fails: the cause, a fix and the last lines.
   */
  async must(step: string, argv: string[], options: StepOptions = {}): Promise<void> {
    const outcome = await this.try(argv, options);
    if (!outcome.success) throw this.failure(step, outcome);
  }

  failure(step: string, { lines }: CommandOutcome): InfrastructureError {
    const at = lines.findIndex((line) => /^\s*error\b/i.test(line));
    const cause = at < 0 ? lines.at(-1) ?? "no output" : causeAt(lines, at);
    const fix = FIXES.find(([pattern]) => lines.some((line) => pattern.test(line)))?.[1] ??
      OTHER_FIX;
    const head = `Cannot create the Python environment '${this.name}' because ${step} failed: ` +
      `${cause.trim()}. Fix: ${fix}`;
    const shown = lines.slice(-LINES_SHOWN).map((line) => `  | ${line}`);
    const facts = { environment: this.name, step, log: this.#log };
    return new InfrastructureError([head, ...shown, `  log: ${this.#log}`].join("\n"), facts, {
      retryable: false,
    });
  }

  async #sayOften(doing: () => string, ended: AbortSignal): Promise<void> {
    const clock = this.#options.clock ?? systemClock;
    const began = clock.monotonic();
    while (!ended.aborted) {
      try {
        await clock.sleep(SAY_MS, ended);
      } catch {
        return; // The step has ended.
      }
      this.say(`${doing()}, ${Math.round((clock.monotonic() - began) / 1000)} s`, true);
    }
  }

  #write(line: string): void {
    Deno.writeTextFileSync(this.#log, `${line}\n`, { append: this.#logged });
    this.#logged = true;
  }
}

/** An error of uv with its deepest cause, which says more: it writes each on a separate line. */
function causeAt(lines: string[], at: number): string {
  const causes = lines.slice(at + 1).filter((line) => /^\s*(cause|caused by):/i.test(line));
  const deepest = causes.at(-1)?.replace(/^\s*\w[\w ]*:\s*/, "");
  return deepest === undefined ? lines[at]! : `${lines[at]} (${deepest})`;
}
