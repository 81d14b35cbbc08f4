import type { EvaluatedStep } from "../../../algs/mod.ts";
import { withToken } from "./steps.ts";
import type { LossUnderTest, Probe } from "./asked_of.ts";

/** Counts, per branch of a loss, the values that took it. */
export class BranchCount {
  readonly counts = new Map<string, number>();

  add({ corners }: Probe): void {
    for (const { name, branches, sides } of corners) {
      for (const branch of branches) {
        const key = `${name} ${branch}`;
        this.counts.set(
          key,
          (this.counts.get(key) ?? 0) + sides.filter((side) => side === branch).length,
        );
      }
    }
  }

  never(): string[] {
    return [...this.counts].flatMap(([key, count]) => (count === 0 ? [key] : []));
  }
}

/** A number that can be moved: a token of a token input, or a sequence input with t 0. */
export type Place = { name: string; s: number; t: number };

/** One corner that moving one number reaches. */
export type Edge = {
  title: string;
  /** What moves. */
  place: Place;
  /** The step with that number moved to `offset` beyond the corner. */
  beside: (offset: number) => EvaluatedStep;
  /**
   * With that number at the corner, then at the floating-point numbers around it, nearest first.
   */
  at: () => EvaluatedStep[];
};

/** One edge each of every corner of the loss that some single input reaches from `step`. */
export async function findEdges(loss: LossUnderTest, step: EvaluatedStep): Promise<Edge[]> {
  const [{ corners }] = await loss.probe([step]) as [Probe];
  const edges = new Map<string, Edge>();
  const wanted = corners.flatMap(({ name, distances }, c) =>
    [...distances.keys()].map((bound) => ({ title: `${name} ${bound}`, read: readerOf(c, bound) }))
  );
  for (const place of placesOf(loss, step)) {
    const missing = wanted.filter(({ title }) => !edges.has(title));
    if (missing.length === 0) break;
    const line = await walk(loss, step, place);
    for (const { title, read } of missing) {
      const x = await crossing(line, read);
      if (x !== null) edges.set(title, { title, ...around(step, place, x) });
    }
  }
  return [...edges.values()];
}

type Read = (probe: Probe) => readonly number[];

const readerOf = (corner: number, bound: number): Read => ({ corners }) =>
  corners[corner]!.distances[bound]!;

function around(step: EvaluatedStep, place: Place, x: number): Omit<Edge, "title"> {
  return {
    place,
    beside: (offset) => withToken(step, place, x + offset),
    at: () => nextNumbers(x, ULPS).map((near) => withToken(step, place, near)),
  };
}

const ULPS = 4;

/** x, then the floating-point numbers around it, `count` on either side, nearest first. */
function nextNumbers(x: number, count: number): number[] {
  if (x === 0) return [0];
  const bits = new BigInt64Array(new Float64Array([x]).buffer)[0]!;
  const number = (offset: number) =>
    new Float64Array(new BigInt64Array([bits + BigInt(offset)]).buffer)[0]!;
  return [x, ...Array.from({ length: count }, (_, k) => [number(k + 1), number(-k - 1)]).flat()];
}

/** What may move: every input of every sequence, at its first unmasked token. */
function placesOf({ reads }: LossUnderTest, { sequences }: EvaluatedStep): Place[] {
  return reads.flatMap((name) =>
    sequences.flatMap(({ inputs, mask }, s) => {
      const column = inputs[name];
      if (column === undefined) return [];
      const t = typeof column === "number" ? 0 : mask.indexOf(1);
      return t < 0 ? [] : [{ name, s, t }];
    })
  ).toSorted((a, b) => rank(a.name) - rank(b.name));
}

const LIVE_FIRST = ["logp", "values", "score", "entropy"];
const rank = (
  name: string,
) => (LIVE_FIRST.includes(name) ? LIVE_FIRST.indexOf(name) : LIVE_FIRST.length);

/** The probes of a step along one input, nearest to where it is first. */
type Line = {
  xs: number[];
  probes: readonly Probe[];
  probe: (xs: readonly number[]) => Promise<readonly Probe[]>;
};

/** How far an input is moved: finely at first, then as far as a clamped log-ratio may lie. */
const OFFSETS = [
  ...Array.from({ length: 12 }, (_, k) => (k + 1) / 6),
  ...Array.from({ length: 22 }, (_, k) => k + 3),
];

async function walk(loss: LossUnderTest, step: EvaluatedStep, place: Place): Promise<Line> {
  const column = step.sequences[place.s]!.inputs[place.name]!;
  const start = typeof column === "number" ? column : column[place.t]!;
  const probe = (xs: readonly number[]) => loss.probe(xs.map((x) => withToken(step, place, x)));
  const xs = [start, ...OFFSETS.flatMap((d) => [start + d, start - d])];
  return { xs, probes: await probe(xs), probe };
}

/** Where some value's distance changes its sign nearest to the start of the line. */
async function crossing({ xs, probes, probe }: Line, read: Read): Promise<number | null> {
  const [first, ...others] = probes.map(read);
  const changed = (values: readonly number[]) =>
    values.findIndex((d, i) => d > 0 !== first![i]! > 0);
  const k = others.findIndex((values) => changed(values) >= 0);
  if (k < 0) return null;
  const element = changed(others[k]!);
  const side = async (xs: readonly number[]) =>
    (await probe(xs)).map((one) => read(one)[element]! > 0);
  return await narrowed(side, { near: k < 2 ? xs[0]! : xs[k - 1]!, far: xs[k + 1]! });
}

/** Inner places that each round of the search looks at together. */
const INNER = 3;
/**
 * The interval is a quarter of the last one each round: enough to leave two neighbouring
 * floating-point numbers.
 */
const ROUNDS = 27;

/** The place between `near` and `far`, which lie on two sides, where the side changes. */
async function narrowed(
  side: (xs: readonly number[]) => Promise<boolean[]>,
  { near, far }: { near: number; far: number },
): Promise<number> {
  const [first] = await side([near]);
  for (let round = 0; round < ROUNDS; round++) {
    const inner = Array.from(
      { length: INNER },
      (_, k) => near + ((far - near) * (k + 1)) / (INNER + 1),
    );
    const sides = await side(inner);
    const k = sides.findIndex((one) => one !== first);
    [near, far] = [k === 0 ? near : inner.at(k < 0 ? -1 : k - 1)!, k < 0 ? far : inner[k]!];
  }
  return near;
}
