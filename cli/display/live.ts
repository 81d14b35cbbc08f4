import { createLogUpdate } from "log-update";
import pc from "picocolors";
import type { EngineEvent } from "../../engine/mod.ts";
import { type Evaluation, type PairEvaluation, untrainedText } from "../../flows/mod.ts";
import type { WorkersEvent } from "../../workers/mod.ts";
import { fixed, type Screen } from "./output.ts";
import { evaluationText } from "./evaluation_text.ts";
import { TokenRate } from "./token_rate.ts";
import { visible } from "./visible.ts";
import { workerLine } from "./worker_lines.ts";

const BARS = "▁▂▃▄▅▆▇█";
const SPARK_POINTS = 40;
/** Of a line on a pipe. */
const LINE_MAX = 199;

/** Newest values as a row of bars, scaled between their own least and greatest. */
export function sparkline(values: number[], points = SPARK_POINTS): string {
  const shown = values.slice(-points);
  const [least, most] = [Math.min(...shown), Math.max(...shown)];
  const scale = most > least ? (BARS.length - 1) / (most - least) : 0;
  return shown.map((value) => BARS[Math.round((value - least) * scale)]).join("");
}

/** Seconds as a person reads them: `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Parts side by side, on as few lines of this width as possible. */
function wrapped(parts: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && `${last}  ${part}`.length <= width) {
      lines[lines.length - 1] = `${last}  ${part}`;
    } else lines.push(part);
  }
  return lines;
}

type StageFailed = Extract<EngineEvent, { type: "stage_failed" }>;

type Loop = {
  name: string;
  round: number;
  times: number;
  started_ms: number;
  started_round: number;
};

/**
 * Shows a run in progress: stages, round, reward, tokens per second, time left. It only reads
 * events, so it can never affect the run.
 */
export class LiveView {
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #stop: AbortSignal | undefined;
  readonly #colors: ReturnType<typeof pc.createColors>;
  readonly #running = new Map<string, { stage: string; since: number }>();
  readonly #metrics: Record<string, number> = {};
  readonly #rewards: number[] = [];
  readonly #rate = new TokenRate();
  #loop: Loop | null = null;
  readonly #part: ReturnType<typeof createLogUpdate>;
  #drawn = false;
  /** The last round trained nothing. */
  #idle = false;

  /** `stop`: aborted when the run is asked to stop. */
  constructor(options: { screen: Screen; now: () => number; stop?: AbortSignal }) {
    this.#stop = options.stop;
    this.#screen = options.screen;
    this.#now = options.now;
    this.#colors = pc.createColors(options.screen.color);
    this.#part = createLogUpdate(asStream(options.screen), { showCursor: true });
  }

  on(event: EngineEvent): void {
    switch (event.type) {
      case "stage_started":
        this.#running.set(event.key, { stage: event.stage, since: this.#now() });
        break;
      case "stage_finished":
        this.#running.delete(event.key);
        break;
      case "stage_failed":
        this.#running.delete(event.key);
        this.#failed(event);
        break;
      case "metrics":
        this.#take(event);
        break;
      case "log":
        this.note(event.text);
        break;
      case "note":
        if (event.kind === "recovery") this.note(recoveryLine(event.value));
        if (event.kind === "note/evaluation") this.note(evaluationLine(event.value));
        break;
      case "round_closed":
        this.#closed(event);
        break;
    }
    this.#redraw();
  }

  /** Prints a permanent line for each process that was lost and replaced. */
  onWorkers(event: WorkersEvent): void {
    const line = workerLine(event);
    if (line === null) return;
    this.note(line);
    this.#redraw();
  }

  /** Prints a permanent line above the live part. */
  note(text: string): void {
    this.#clear();
    this.#screen.write(`${visible(text)}\n`);
  }

  /** Shows a step of the setup. On a terminal, the next line replaces a passing one. */
  setup({ text, passing }: { text: string; passing: boolean }): void {
    if (!passing || !this.#screen.tty) return this.note(text);
    this.#draw([`  ${visible(text).slice(0, this.#screen.columns - 4)}`]);
  }

  /** Leaves the last progress and the reward curve on the screen, below the permanent lines. */
  end(): void {
    if (!this.#drawn) return;
    this.#clear();
    this.#screen.write(this.#summary().map((line) => `${line}\n`).join(""));
  }

  /** Only the cause: a worker's log lines are printed only if the run fails because of it. */
  #failed({ key, attempt, error, next_ms }: StageFailed): void {
    if (next_ms === null) return; // The last failure is printed when the run ends.
    const isStop = this.#stop?.aborted === true;
    if (isStop && error.code === "drained") return; // Only the stop ended it.
    const follows = isStop ? "to be retried by resume" : "retrying";
    this.note(`${key} failed (attempt ${attempt}), ${follows}: ${error.message.split("\n")[0]}`);
  }

  #take({ key, metrics }: { key: string; metrics: Record<string, number> }): void {
    Object.assign(this.#metrics, metrics);
    const tokens = (metrics["perf/generated_tokens"] ?? 0) + (metrics["perf/trained_tokens"] ?? 0);
    if (tokens > 0) {
      const at = this.#now();
      this.#rate.add({ since: this.#running.get(key)?.since ?? at, at, tokens });
    }
    if (metrics["reward/mean"] !== undefined) this.#rewards.push(metrics["reward/mean"]);
  }

  #closed({ loop, round, times, tally }: Extract<EngineEvent, { type: "round_closed" }>): void {
    const idle = untrainedText(tally);
    if (idle !== null && !this.#idle) this.note(`WARNING: ${loop} ${round}: ${idle}`);
    this.#idle = idle !== null; // Warn once per streak of such rounds.
    if (this.#loop?.name !== loop) {
      this.#loop = { name: loop, round, times, started_ms: this.#now(), started_round: round };
    }
    this.#loop.round = round;
    this.#rate.roundClosed(this.#now());
    if (!this.#screen.tty) this.#screen.write(`${this.#roundLine()}\n`);
  }

  #roundLine(): string {
    return this.#roundParts().join("  ").slice(0, LINE_MAX);
  }

  #roundParts(): string[] {
    const loop = this.#loop!;
    const remaining = this.#remainingSeconds();
    const metric = (name: string, label: string, digits: number) =>
      this.#metrics[name] === undefined ? [] : [`${label} ${fixed(this.#metrics[name]!, digits)}`];
    return [
      `${loop.name} ${loop.round}/${loop.times}`,
      ...(loop.name.includes("round") ? metric("reward/mean", "reward", 3) : []),
      ...metric("policy/loss", "loss", 4),
      ...metric("optim/grad_norm", "grad", 3),
      `${this.#rate.perSecond(this.#now())} tokens/s`,
      ...(remaining === null ? [] : [`${duration(remaining)} left`]),
    ];
  }

  /**
   * Counts only rounds since this engine started: a resumed run's earlier rounds would look
   * instant.
   */
  #remainingSeconds(): number | null {
    const { round, times, started_ms, started_round } = this.#loop!;
    if (round === started_round) return null;
    return ((this.#now() - started_ms) / (round - started_round)) * (times - round) / 1000;
  }

  #redraw(): void {
    if (!this.#screen.tty) return;
    const stages = [...new Set([...this.#running.values()].map(({ stage }) => stage))].join(", ") ||
      "waiting";
    this.#draw([this.#colors.dim(this.#cut(`  now      ${stages}`)), ...this.#summary()]);
  }

  /** Progress, on as many lines as the terminal's width needs, and the rewards so far. */
  #summary(): string[] {
    const { columns } = this.#screen;
    const label = "  progress ";
    const progress = this.#loop ? wrapped(this.#roundParts(), columns - label.length) : [];
    const points = Math.max(1, Math.min(SPARK_POINTS, columns - label.length));
    return [
      ...progress.map((line, i) => this.#cut((i === 0 ? label : " ".repeat(label.length)) + line)),
      ...(this.#rewards.length > 1
        ? [this.#colors.green(this.#cut(`  reward   ${sparkline(this.#rewards, points)}`))]
        : []),
    ];
  }

  /** Cut before it is painted: a line that wraps could not be redrawn. */
  #cut(line: string): string {
    return line.slice(0, this.#screen.columns);
  }

  #draw(lines: string[]): void {
    this.#part(lines.join("\n"));
    this.#drawn = true;
  }

  #clear(): void {
    if (this.#drawn) this.#part.clear();
    this.#drawn = false;
  }
}

/** What log-update asks of the stream that it draws on. */
function asStream(screen: Screen): NodeJS.WritableStream {
  const stream = {
    write: (text: string) => screen.write(text),
    get columns() {
      return screen.columns;
    },
    isTTY: screen.tty,
  };
  return stream as unknown as NodeJS.WritableStream;
}

function recoveryLine(value: unknown): string {
  const { cause, action, batches_redone } = value as {
    cause: string;
    action: string;
    batches_redone: number;
  };
  if (action === "adopt") return "adopted the previous engine's workers";
  return `${
    cause === "resume" ? "resumed" : `recovered from ${cause}`
  }: ${action}, ${batches_redone} batches redone`;
}

function evaluationLine(value: unknown): string {
  const evaluation = value as Evaluation | PairEvaluation;
  return `evaluation ${evaluation.name}: ${evaluationText(evaluation)}`;
}
