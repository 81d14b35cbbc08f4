/** Two recorded evaluations over the same problems, problem by problem. */
import { z } from "zod";
import { InvalidInputError, randomStream } from "../engine/mod.ts";
import { bootstrapIntervals, Evaluation, ProblemResult } from "../flows/mod.ts";
import { findRun } from "./home/find_run.ts";
import type { Home } from "./home/home.ts";
import { runView } from "./run_view.ts";

/** A measure of both, over the problems that both have it for. */
type PairedDifference = {
  measure: "accuracy" | "majority" | "mean_reward";
  problems: number;
  a: number;
  b: number;
  /** b - a. */
  difference: number;
  /** 95 % interval of the difference: bootstrap over problems; null: fewer than two. */
  interval: [number, number] | null;
  /** Problems on which b is better, worse, and as good. */
  better: number;
  worse: number;
  equal: number;
};

/** `a`, `b`: RUN/EVALUATION. `only_a`, `only_b`: problems that the other does not have. */
export type ComparedEvaluations = {
  a: string;
  b: string;
  only_a: number;
  only_b: number;
  measures: PairedDifference[];
};

type Found = { run: string; evaluation: Evaluation };

/**
 * Compares each evaluation with the first. `named`: RUN, for all of its evaluations, or
 * RUN/EVALUATION, for one.
 * @throws {InvalidInputError} If there is nothing to compare.
 */
export async function compareEvaluations(
  home: Home,
  named: readonly string[],
): Promise<ComparedEvaluations[]> {
  if (named.length < 2) {
    throw new InvalidInputError(
      "Cannot compare because there are fewer than two evaluations: name at least two, as RUN " +
        "or RUN/EVALUATION",
      {},
    );
  }
  const [first, ...others] = await Promise.all(named.map((one) => foundIn(home, one)));
  const pairs = others.flatMap((other) => pairsOf(first!, other));
  return await Promise.all(pairs.map((pair) => compared(home, pair)));
}

/** The evaluations that have results by problem: those of held-out pairs do not. */
async function foundIn(home: Home, named: string): Promise<Found[]> {
  const [run, ...rest] = named.split("/");
  const name = rest.join("/");
  const head = await findRun(home, run!);
  const { evaluations } = await runView(home.store, head, { workers: [], metrics: {} });
  const found = evaluations.flatMap((one): Found[] => {
    const { data } = Evaluation.safeParse(one);
    return data ? [{ run: head.id, evaluation: data }] : [];
  });
  const wanted = found.filter(({ evaluation }) => name === "" || evaluation.name === name);
  if (wanted.length > 0) return wanted;
  const has = found.map(({ evaluation }) => evaluation.name).join(", ") || "none";
  throw new InvalidInputError(
    `Cannot compare '${named}' because the run has no such evaluation with results by problem: ` +
      `it has ${has}`,
    { named },
  );
}

/** Those of the same name; if each has only one, these two. */
function pairsOf(a: Found[], b: Found[]): [Found, Found][] {
  if (a.length === 1 && b.length === 1) return [[a[0]!, b[0]!]];
  const pairs = a.flatMap((one): [Found, Found][] => {
    const same = b.find(({ evaluation }) => evaluation.name === one.evaluation.name);
    return same ? [[one, same]] : [];
  });
  if (pairs.length > 0) return pairs;
  const names = (found: Found[]) => found.map(({ evaluation }) => evaluation.name).join(", ");
  throw new InvalidInputError(
    `Cannot compare '${a[0]!.run}' and '${
      b[0]!.run
    }' because no evaluation has one name in both: ` +
      `${names(a)}; ${names(b)}. Name them, as RUN/EVALUATION`,
    {},
  );
}

async function compared(home: Home, [a, b]: [Found, Found]): Promise<ComparedEvaluations> {
  const [of_a, of_b] = await Promise.all([a, b].map(async ({ evaluation }) => {
    const read = await home.artifacts.getJson(evaluation.by_problem!);
    return new Map(z.array(ProblemResult).parse(read).map((one) => [one.row_id, one]));
  })) as [Map<string, ProblemResult>, Map<string, ProblemResult>];
  const both = [...of_a.keys()].filter((row_id) => of_b.has(row_id));
  const [name_a, name_b] = [a, b].map(({ run, evaluation }) => `${run}/${evaluation.name}`);
  if (both.length === 0) {
    throw new InvalidInputError(
      `Cannot compare ${name_a} and ${name_b} because they have no problem in common`,
      {},
    );
  }
  const measures = Object.entries(MEASURES).flatMap(([measure, valueOf]) =>
    pairedDifference(measure as PairedDifference["measure"], {
      a: both.map((row_id) => valueOf(of_a.get(row_id)!)),
      b: both.map((row_id) => valueOf(of_b.get(row_id)!)),
    })
  );
  return {
    a: name_a!,
    b: name_b!,
    only_a: of_a.size - both.length,
    only_b: of_b.size - both.length,
    measures,
  };
}

const MEASURES: Record<PairedDifference["measure"], (of: ProblemResult) => number | null> = {
  accuracy: ({ decided, right }) => decided === 0 ? null : right / decided,
  majority: ({ majority }) => majority,
  mean_reward: ({ mean_reward }) => mean_reward,
};

type Columns = { a: (number | null)[]; b: (number | null)[] };

/** None if no problem has the measure in both. */
function pairedDifference(
  measure: PairedDifference["measure"],
  { a, b }: Columns,
): PairedDifference[] {
  const pairs = a.flatMap((one, i) => {
    const other = b[i]!;
    return one === null || other === null ? [] : [{ a: one, b: other, difference: other - one }];
  });
  if (pairs.length === 0) return [];
  const mean = (of: "a" | "b" | "difference") =>
    pairs.reduce((sum, pair) => sum + pair[of], 0) / pairs.length;
  const difference = pairs.map((pair) => pair.difference);
  const intervals = bootstrapIntervals({ difference }, randomStream("compare", measure));
  return [{
    measure,
    problems: pairs.length,
    a: mean("a"),
    b: mean("b"),
    difference: mean("difference"),
    interval: intervals.difference ?? null,
    better: difference.filter((one) => one > 0).length,
    worse: difference.filter((one) => one < 0).length,
    equal: difference.filter((one) => one === 0).length,
  }];
}
