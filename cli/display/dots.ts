/** The bits of a braille character, by row and column of its dots. */
const BITS = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]] as const;
const BRAILLE = 0x2800;

/** Dots across and down a character. */
const [ACROSS, DOWN] = [2, 4];

type Cell = { bits: number; owner: number };
type Place = { x: number; y: number };

/** Dots in a rectangle of braille characters. A character has one owner: who drew there last. */
export class Dots {
  readonly #cells: Cell[][];
  readonly #size: { columns: number; rows: number };

  constructor(size: { columns: number; rows: number }) {
    this.#size = size;
    const row = () => Array.from({ length: size.columns }, () => ({ bits: 0, owner: 0 }));
    this.#cells = Array.from({ length: size.rows }, row);
  }

  /** A line of an owner from one place to another, both from 0 to 1: from the left, from above. */
  line(from: Place, to: Place, owner: number): void {
    const [a, b] = [this.#dot(from), this.#dot(to)];
    const length = Math.max(Math.abs(b.x - a.x), Math.abs(b.y - a.y), 1);
    for (let i = 0; i <= length; i++) {
      const at = (one: number, other: number) => Math.round(one + ((other - one) * i) / length);
      this.#set({ x: at(a.x, b.x), y: at(a.y, b.y) }, owner);
    }
  }

  /** A line of text for each row; `paint` colours what is an owner's. */
  rows(paint: (text: string, owner: number) => string): string[] {
    const shown = ({ bits, owner }: Cell) =>
      bits === 0 ? " " : paint(String.fromCodePoint(BRAILLE + bits), owner);
    return this.#cells.map((row) => row.map(shown).join(""));
  }

  #dot({ x, y }: Place): Place {
    const { columns, rows } = this.#size;
    return { x: Math.round(x * (columns * ACROSS - 1)), y: Math.round(y * (rows * DOWN - 1)) };
  }

  #set({ x, y }: Place, owner: number): void {
    const cell = this.#cells[Math.floor(y / DOWN)]![Math.floor(x / ACROSS)]!;
    cell.bits |= BITS[y % DOWN]![x % ACROSS]!;
    cell.owner = owner;
  }
}
