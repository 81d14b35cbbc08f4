import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from "yaml";
import type { Moved } from "./short_forms.ts";
import type { Path } from "./settings/schema_walk.ts";

/** Line and column, from 1. */
export type Position = { line: number; column: number };
type SyntaxProblem = Position & { path: Path; message: string; fatal: boolean };

type Found = { at: number; exact: boolean };

/** Where a value contains itself, as an alias of a block around it makes it; null: nowhere. */
function placeInItself(value: unknown, around: readonly unknown[] = []): Path | null {
  if (value === null || typeof value !== "object") return null;
  if (around.includes(value)) return [];
  for (const [name, one] of Object.entries(value)) {
    const place = placeInItself(one, [...around, value]);
    if (place !== null) return [Array.isArray(value) ? Number(name) : name, ...place];
  }
  return null;
}

/** A YAML text parsed once, with the place of everything in it. */
export class YamlFile {
  readonly value: unknown;
  readonly problems: SyntaxProblem[];
  readonly #document: Document.Parsed;
  readonly #lines = new LineCounter();

  constructor(text: string) {
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      uniqueKeys: true,
    });
    this.problems = [...this.#document.errors, ...this.#document.warnings].map((error) => ({
      ...this.#position(error.pos[0]),
      path: error.code === "DUPLICATE_KEY" ? this.#keyAt(error.pos[0]) : [],
      // A tree with a duplicate key can still be checked; after other errors there is none.
      fatal: error.code !== "DUPLICATE_KEY",
      message: error.code === "DUPLICATE_KEY"
        ? "the key appears twice in this block; keep one"
        : `not YAML: ${error.message}`,
    }));
    this.value = this.problems.some(({ fatal }) => fatal) ? undefined : this.#toValue();
  }

  /**
   * The place of a path of the long form, or of the nearest thing around it. `key`: the key itself,
   * not its value.
   */
  position(
    path: Path,
    { moved, key = false }: { moved: readonly Moved[]; key?: boolean },
  ): Position {
    return this.#position(this.#find(written(path, moved), key).at);
  }

  /** Whether the file itself has a value at this path. */
  says(path: Path, moved: readonly Moved[]): boolean {
    return this.#find(written(path, moved), false).exact;
  }

  #toValue(): unknown {
    try {
      const value: unknown = this.#document.toJS({ maxAliasCount: 100 });
      const inside = placeInItself(value);
      if (inside === null) return value;
      this.#refuse(inside, "the alias names a block that contains it; write the value out");
    } catch (error) {
      this.#refuse([], `not YAML: ${(error as Error).message}`);
    }
    return undefined;
  }

  #refuse(path: Path, message: string): void {
    const { at } = this.#find(path, false);
    this.problems.push({ ...this.#position(at), path, fatal: true, message });
  }

  /** The path of the key that starts at an offset; empty if none does. */
  #keyAt(offset: number): Path {
    let found: Path = [];
    visit(this.#document, {
      Pair(_, pair, ancestors) {
        if (!isScalar(pair.key) || pair.key.range?.[0] !== offset) return;
        const keys = ancestors.flatMap((node, i): (string | number)[] => {
          if (isPair(node) && isScalar(node.key)) return [String(node.key.value)];
          const next = ancestors[i + 1];
          return isSeq(node) && next !== undefined ? [node.items.indexOf(next)] : [];
        });
        found = [...keys, String(pair.key.value)];
        return visit.BREAK;
      },
    });
    return found;
  }

  #find(path: Path, key: boolean): Found {
    let node: Node | null = this.#document.contents;
    let at = node?.range?.[0] ?? 0;
    for (const [depth, step] of path.entries()) {
      const next = this.#step(node, step);
      if (next === undefined) return { at, exact: false };
      node = next.node;
      at = key && depth === path.length - 1 ? next.key : node?.range?.[0] ?? next.key;
      // A mapping's own range starts at its first key: its name says more.
      if (isMap(node) || isSeq(node)) at = next.key;
    }
    return { at, exact: true };
  }

  #step(node: Node | null, step: string | number): { node: Node | null; key: number } | undefined {
    const here = isAlias(node) ? node.resolve(this.#document) ?? null : node;
    if (isSeq(here)) {
      const item = here.items[Number(step)] as Node | null | undefined;
      return item === undefined
        ? undefined
        : { node: item, key: item?.range?.[0] ?? here.range?.[0] ?? 0 };
    }
    if (!isMap(here)) return undefined;
    const pairs = here.items.filter(({ key }) =>
      isScalar(key) && String(key.value) === String(step)
    );
    const pair = pairs.at(-1);
    return pair && { node: pair.value as Node | null, key: (pair.key as Node).range?.[0] ?? 0 };
  }

  #position(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}

/**
 * The path as written in the file: the longest moved part is mapped back to where it was written.
 */
function written(path: Path, moved: readonly Moved[]): Path {
  let at = path;
  // Later moves were made inside what earlier ones had moved, so they are undone first.
  for (const move of [...moved].reverse()) {
    if (
      move.path.length <= at.length && move.path.every((step, i) => String(step) === String(at[i]))
    ) {
      at = [...move.from, ...at.slice(move.path.length)];
    }
  }
  return at;
}
