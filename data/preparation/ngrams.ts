const WORD = /[\p{L}\p{N}]+/gu;

/**
 * The words of a text as contamination compares them: letters and digits in lower case, without
 * punctuation, so that spacing and markup make no difference.
 */
export function wordsOf(text: string): string[] {
  return text.normalize("NFKC").toLowerCase().match(WORD) ?? [];
}

/** Where a text shares words with an evaluation set. `ngram`: the words. */
type SharedWords = { set: string; ngram: string };

/** An index as it is kept. Each text has the number of its set in `sets`. */
export type NgramRecord = {
  words: number;
  sets: string[];
  ngrams: [text: string, set: number][];
  short: [text: string, set: number][];
};

/**
 * Sequences of `words` words that evaluation sets contain, exactly. A text of fewer words is
 * contained only in a text of exactly its words. The first set that has a sequence counts.
 */
export class NgramIndex {
  readonly #words: number;
  readonly #sets: string[] = [];
  readonly #ngrams = new Map<string, number>();
  readonly #short = new Map<string, number>();

  constructor(words: number) {
    this.#words = words;
  }

  /** From what `record` returned. */
  static read({ words, sets, ngrams, short }: NgramRecord): NgramIndex {
    const index = new NgramIndex(words);
    index.#sets.push(...sets);
    for (const [text, set] of ngrams) index.#ngrams.set(text, set);
    for (const [text, set] of short) index.#short.set(text, set);
    return index;
  }

  /** Adds a text of a set. */
  add(set: string, text: string): void {
    if (!this.#sets.includes(set)) this.#sets.push(set);
    const number = this.#sets.indexOf(set);
    const words = wordsOf(text);
    if (words.length === 0) return;
    const into = words.length < this.#words ? this.#short : this.#ngrams;
    for (const ngram of ngramsOf(words, Math.min(this.#words, words.length))) {
      if (!into.has(ngram)) into.set(ngram, number);
    }
  }

  /** The first sequence of a text that a set contains; null: none. */
  find(text: string): SharedWords | null {
    const words = wordsOf(text);
    if (words.length === 0) return null;
    const short = words.length < this.#words;
    const known = short ? this.#short : this.#ngrams;
    for (const ngram of ngramsOf(words, short ? words.length : this.#words)) {
      const set = known.get(ngram);
      if (set !== undefined) return { set: this.#sets[set]!, ngram };
    }
    return null;
  }

  record(): NgramRecord {
    const [ngrams, short] = [[...this.#ngrams], [...this.#short]];
    return { words: this.#words, sets: this.#sets, ngrams, short };
  }
}

/** Each is a part of one text: no word is copied until a map keeps it. */
function* ngramsOf(words: readonly string[], count: number): Generator<string> {
  const text = words.join(" ");
  let [start, end] = [0, words.slice(0, count).join(" ").length];
  for (let i = 0; i + count <= words.length; i++) {
    yield text.slice(start, end);
    start += words[i]!.length + 1;
    end += (words[i + count]?.length ?? 0) + 1;
  }
}
