import pc from "picocolors";
import type { EngineEvent } from "../../engine/mod.ts";
import { type Evaluation, type PairEvaluation, untrainedText } from "../../flows/mod.ts";
import type { WorkersEvent } from "../../workers/mod.ts";
import { duration, fixed, type Screen } from "./output.ts";
import { evaluationText } from "./evaluation_text.ts";
import { livePart } from "./live_part.ts";
import { recoveryText } from "./recovery_text.ts";
import { RunProgress } from "./run_progress.ts";
import { SPARK_POINTS, sparkline } from "./sparkline.ts";
import { visible } from "./visible.ts";
import { workerLine } from "./worker_lines.ts";

/** Of a line on a pipe. */
const LINE_MAX = 199;

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

type RoundClosed = Extract<EngineEvent, { type: "round_closed" }>;

/**
 * Shows a run in progress: stages, round, reward, length, tokens per second, time left. It only
 * reads events, so it can never affect the run.
 */
export class LiveView {
  readonly #screen: Screen;
  readonly #stop: AbortSignal | undefined;
  readonly #colors: ReturnType<typeof pc.createColors>;
  readonly #progress: RunProgress;
  readonly #part: ReturnType<typeof livePart>;
  #drawn = false;
  /** The last round trained nothing. */
  #idle = false;

  /** `stop`: aborted when the run is asked to stop. */
  constructor(options: { screen: Screen; now: () => number; stop?: AbortSignal }) {
    this.#stop = options.stop;
    this.#screen = options.screen;
    this.#colors = pc.createColors(options.screen.color);
    this.#progress = new RunProgress(options.now);
    this.#part = livePart(options.screen);
  }

  on(event: EngineEvent): void {
    this.#progress.on(event);
    this.#tell(event);
    this.#redraw();
  }

  /** Takes up a run in progress: of the rounds so far only the last one gets a line. */
  async catchUp(past: AsyncIterable<EngineEvent>): Promise<void> {
    let last: RoundClosed | null = null;
    for await (const event of past) {
      this.#progress.on(event);
      if (event.type === "round_closed") last = event;
      else this.#tell(event);
    }
    if (last !== null) this.#tell(last);
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

  /** Prints what stays: failures, recoveries, evaluations, and on a pipe the rounds. */
  #tell(event: EngineEvent): void {
    switch (event.type) {
      case "stage_failed":
        this.#failed(event);
        break;
      case "log":
        this.note(event.text);
        break;
      case "note":
        if (event.kind === "recovery") this.note(recoveryText(event.value));
        if (event.kind === "note/evaluation") this.note(evaluationLine(event.value));
        break;
      case "round_closed":
        this.#closed(event);
        break;
    }
  }

  /** Only the cause: a worker's log lines are printed only if the run fails because of it. */
  #failed({ key, attempt, error, next_ms }: StageFailed): void {
    if (next_ms === null) return; // The last failure is printed when the run ends.
    const isStop = this.#stop?.aborted === true;
    if (isStop && error.code === "drained") return; // Only the stop ended it.
    const follows = isStop ? "to be retried by resume" : "retrying";
    this.note(`${key} failed (attempt ${attempt}), ${follows}: ${error.message.split("\n")[0]}`);
  }

  #closed({ loop, round, tally }: RoundClosed): void {
    const idle = untrainedText(tally);
    if (idle !== null && !this.#idle) this.note(`WARNING: ${loop} ${round}: ${idle}`);
    this.#idle = idle !== null; // Warn once per streak of such rounds.
    if (!this.#screen.tty) this.#screen.write(`${this.#roundLine()}\n`);
  }

  #roundLine(): string {
    return this.#roundParts().join("  ").slice(0, LINE_MAX);
  }

  #roundParts(): string[] {
    const { loop, metrics } = this.#progress;
    const { name, round, times } = loop!;
    const remaining = this.#progress.remainingSeconds();
    const metric = (name: string, label: string, digits: number) =>
      metrics[name] === undefined ? [] : [`${label} ${fixed(metrics[name], digits)}`];
    return [
      times === Infinity ? `${name} ${round}` : `${name} ${round}/${times}`,
      ...(name.includes("round") ? metric("reward/mean", "reward", 3) : []),
      ...metric("policy/loss", "loss", 4),
      ...metric("optim/grad_norm", "grad", 3),
      `${this.#progress.tokensPerSecond()} tokens/s`,
      ...(remaining === null ? [] : [`${duration(remaining)} left`]),
    ];
  }

  #redraw(): void {
    if (!this.#screen.tty) return;
    const waiting = this.#progress.waiting();
    const stages = this.#progress.stages().join(", ") || "waiting";
    const now = waiting === null ? stages : `${stages}; ${waiting}`;
    this.#draw([this.#colors.dim(this.#cut(`  now      ${now}`)), ...this.#summary()]);
  }

  /** Progress, on as many lines as the terminal's width needs, and the curves so far. */
  #summary(): string[] {
    const { columns } = this.#screen;
    const { loop, rewards, lengths } = this.#progress;
    const label = "  progress ";
    const progress = loop ? wrapped(this.#roundParts(), columns - label.length) : [];
    const points = Math.max(1, Math.min(SPARK_POINTS, columns - label.length));
    const curve = (name: string, values: readonly number[]) =>
      values.length > 1
        ? [this.#colors.green(this.#cut(`  ${name.padEnd(8)} ${sparkline(values, points)}`))]
        : [];
    return [
      ...progress.map((line, i) => this.#cut((i === 0 ? label : " ".repeat(label.length)) + line)),
      ...curve("reward", rewards),
      ...curve("length", lengths),
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

function evaluationLine(value: unknown): string {
  const evaluation = value as Evaluation | PairEvaluation;
  return `evaluation ${evaluation.name}: ${evaluationText(evaluation)}`;
}
