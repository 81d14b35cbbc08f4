/** How every command prints: colour, width and JSON are decided here. */
import { resolve } from "node:path";
import type { Home } from "../../runs/mod.ts";
import { visible } from "./visible.ts";

/** The default of `--home`. */
export const DEFAULT_HOME = ".holdfast";

/** The size of a terminal that does not report one; the width of a drawing, and of a line, on a pipe. */
const COLUMNS_UNKNOWN = 80;
const ROWS_UNKNOWN = 24;
const COLUMNS_PIPED = 200;

const encoder = new TextEncoder();

/** Where progress goes: a terminal that can be redrawn, or a pipe that gets one line per round. */
export type Screen = {
  write(text: string): void;
  readonly columns: number;
  readonly rows: number;
  tty: boolean;
  color: boolean;
};

/** The terminal or pipe behind standard error: progress and messages. */
export function errorScreen(): Screen {
  return screenOf(Deno.stderr);
}

/** The terminal or pipe behind standard output, for a result that changes as it is shown. */
export function outputScreen(): Screen {
  return screenOf(Deno.stdout);
}

function screenOf(stream: typeof Deno.stdout | typeof Deno.stderr): Screen {
  const tty = stream.isTerminal();
  return {
    tty,
    color: tty && !Deno.env.get("NO_COLOR"),
    get columns() {
      return tty ? Deno.consoleSize().columns || COLUMNS_UNKNOWN : COLUMNS_PIPED;
    },
    get rows() {
      return tty ? Deno.consoleSize().rows || ROWS_UNKNOWN : ROWS_UNKNOWN;
    },
    write: (text) => void stream.writeSync(encoder.encode(text)),
  };
}

/** How a drawing fits standard output: a terminal, or a pipe. */
export type Canvas = { columns: number; color: boolean };

/** The canvas behind standard output. */
export function outputCanvas(): Canvas {
  const { tty, columns, color } = outputScreen();
  return { columns: tty ? columns : COLUMNS_UNKNOWN, color };
}

/** A result, on standard output: the only thing that may be piped on. */
export function print(text: string): void {
  console.log(visible(text));
}

/** A result whose texts were made visible before they were painted. */
export function printPainted(text: string): void {
  console.log(text);
}

export function printJson(value: unknown): void {
  console.log(visible(JSON.stringify(value, null, 2))); // In a JSON text it is the same value.
}

/** A line of progress or a message, on standard error. */
export function tell(text: string): void {
  errorScreen().write(`${visible(text)}\n`);
}

/** The parts of a home that a command line needs. */
export type CommandHome = Pick<Home, "dir" | "storeUrl" | "isStore">;

/** The command line that does `text` with this home and store, for people to copy. */
export function command(home: CommandHome, text: string): string {
  const { dir, storeUrl } = home;
  const ofEnvironment = home.isStore(Deno.env.get("HOLDFAST_STORE") ?? "");
  const store = storeUrl === null || ofEnvironment ? "" : ` --store ${quoted(storeUrl)}`;
  return `deno task rl ${text}${
    dir === resolve(DEFAULT_HOME) ? "" : ` --home ${quoted(dir)}`
  }${store}`;
}

const NEXT = /^( *next: )deno task rl (.*)$/gm;

/**
 * A message whose `next:` lines were written by rooms that know neither the home nor, if they say
 * RUN, the run.
 */
export function completed(message: string, home: CommandHome, run?: string): string {
  return message.replace(NEXT, (line, next: string, verb: string) => {
    if (/ --(home|store) /.test(verb)) return line;
    return next + command(home, run === undefined ? verb : verb.replace(/\bRUN\b/, run));
  });
}

/** An argument as a shell reads it. */
export function quoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** Rows under a header, columns as wide as their widest cell. */
export function table(header: string[], rows: string[][]): string {
  const widths = header.map((cell, i) =>
    Math.max(cell.length, ...rows.map((row) => row[i]!.length))
  );
  const line = (row: string[]) =>
    row.map((cell, i) => cell.padEnd(widths[i]!)).join("  ").trimEnd();
  return [header, ...rows].map(line).join("\n");
}

/** How long ago, as a person says it. */
export function age(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} days`;
}

/** Seconds as a person reads them: `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Bytes, as a person says them. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 2 ** 20
    ? `${(bytes / 1024).toFixed(1)} KiB`
    : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** A number as a person reads it: one that rounds to zero has no sign. */
export function fixed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** A difference as a person reads it, with its sign; one that rounds to zero has none. */
export function signed(value: number, digits: number): string {
  const text = fixed(value, digits);
  return Number(text) > 0 ? `+${text}` : text;
}
