import { ok } from "node:assert/strict";
import type { Screen } from "../../../cli/display/output.ts";

export const ESC = "\x1b";

const MOVES = `${ESC}\\[(\\d*)([ABGK])`;
const COLOURS_AND_FRAMES = `${ESC}\\[(?:[\\d;]*m|\\?2026[hl])`;
const PIECE = new RegExp(`${MOVES}|${COLOURS_AND_FRAMES}|([^${ESC}])`, "suy");

/** A terminal that keeps its lines, and its cursor where the codes of log-update move it. */
export class Terminal implements Screen {
  written = "";
  #lines: string[] = [""];
  #row = 0;
  #column = 0;
  readonly tty: boolean;
  readonly color: boolean;
  readonly columns: number;
  readonly rows: number;
  constructor({ tty = true, color = false, columns = 80, rows = 24 } = {}) {
    this.tty = tty;
    this.color = color;
    this.columns = columns;
    this.rows = rows;
  }

  /** Up to the last one with text, and the one below it. */
  get lines(): string[] {
    return [...this.#lines.slice(0, this.#lines.findLastIndex((line) => line !== "") + 1), ""];
  }

  write(text: string): void {
    this.written += text;
    PIECE.lastIndex = 0;
    while (PIECE.lastIndex < text.length) {
      const rest = JSON.stringify(text.slice(PIECE.lastIndex));
      const piece = PIECE.exec(text);
      if (piece === null) throw new Error(`no code that this terminal knows: ${rest}`);
      const [, count, code, character] = piece;
      if (code !== undefined) this.#move(code, count!);
      else if (character !== undefined) this.#put(character);
    }
  }

  #move(code: string, count: string): void {
    const line = this.#lines[this.#row]!;
    if (code === "A") this.#row = Math.max(0, this.#row - Number(count || 1));
    if (code === "B") this.#row = Math.min(this.#lines.length - 1, this.#row + Number(count || 1));
    if (code === "G") this.#column = Number(count || 1) - 1;
    if (code === "K") this.#lines[this.#row] = count === "2" ? "" : line.slice(0, this.#column);
  }

  #put(character: string): void {
    if (character === "\n") {
      this.#row++;
      this.#column = 0;
      if (this.#row === this.#lines.length) this.#lines.push("");
      return;
    }
    const line = [...this.#lines[this.#row]!.padEnd(this.#column)];
    line.splice(this.#column++, 1, character);
    if (this.tty) ok(line.length <= this.columns, `a line would wrap: ${line.join("")}`);
    this.#lines[this.#row] = line.join("");
  }
}
