/**
 * What the property suite asks of an algorithm, whatever language it is written in: values,
 * gradients and credit. `traced.ts` answers for the algorithms of the table; `properties.ts` asks.
 */
import type { Assigned, CreditNeeds, CreditRound, EvaluatedStep } from "../../../algs/mod.ts";

/** Rows of every micro-batch of every rank; -1 is a filler. */
export type Cut = number[][][];

/**
 * An operation with sides: clamp, minimum, maximum, lt, le, where. Of each of its values: the side
 * it is on, and how far it is from where the sides meet.
 */
export type Corner = {
  /** The same in every probe of one loss. */
  name: string;
  /** The sides that some case must take. */
  branches: readonly number[];
  /**
   * [values] clamp: -1 below, 0 within, its bounds too, 1 above. minimum, maximum, lt, le: the sign
   * of the first minus the second. where: 1 true, -1 false.
   */
  sides: readonly number[];
  /**
   * [edges][values] Signed, 0 at the edge itself. clamp: from each bound that it has; where: none.
   */
  distances: readonly (readonly number[])[];
};

/** The loss of a step, computed without a gradient. */
export type Probe = {
  loss: number;
  metrics: Readonly<Record<string, number>>;
  corners: readonly Corner[];
};

/**
 * What stays as it is while inputs move, so that differences of the loss are differences of what is
 * differentiated.
 */
export type Held = {
  /** Every `detach` has its value of this step. */
  detached: EvaluatedStep;
  /**
   * Every corner named here stays on its sides; 0 of minimum and maximum is torch's tie: half of
   * each.
   */
  sides?: Readonly<Record<string, readonly number[]>>;
};

/** A step to differentiate, cut in several ways. */
export type Differentiated = {
  step: EvaluatedStep;
  cuts: readonly Cut[];
  /** `old_logp` is read as the detached `logp`, and is no column. */
  old_is_current?: boolean;
  /**
   * Also tell the corners as torch computed them: of the first cut, which must be one micro-batch
   * on one rank.
   */
  corners?: boolean;
};

/** One cut's outcome. Gradients by live input, per sequence: [T], or [1] of a sequence input. */
export type Outcome = {
  loss: number;
  metrics: Record<string, number>;
  gradients: Record<string, number[][]>;
  corners?: Corner[];
};

/** One loss with one choice of settings. */
export type LossUnderTest = {
  title: string;
  /** Names of the inputs that it reads, live ones too. */
  reads: readonly string[];
  /** Sequences come as chosen, rejected, chosen, ... */
  pairs: boolean;
  /** float64, the whole step at once. */
  probe(steps: readonly EvaluatedStep[], held?: Held): Promise<readonly Probe[]>;
  /**
   * What the trainer computes, float64, on simulated ranks; the outcomes of each case are in the
   * order of its cuts.
   */
  differentiate(cases: readonly Differentiated[]): Promise<readonly (readonly Outcome[])[]>;
};

/** A round with all that credit may ask for. */
export type FullRound = CreditRound & CreditNeeds;

/** An algorithm with one choice of settings. */
export type Variant = {
  /** Its name and its settings, as a person writes them. */
  title: string;
  /** With defaults filled in. */
  settings: Readonly<Record<string, unknown>>;
  /** The loss, and the value model's if it has one. */
  losses: readonly LossUnderTest[];
  /** None: it learns from rows, not from rewards. */
  credit?: (round: FullRound) => Promise<Assigned>;
};

export type AlgorithmUnderTest = {
  name: string;
  /** It compares the samples of a prompt with each other: only differences within a group count. */
  group_min: number;
  /** Its defaults first, then each of its `examples`. */
  variants: readonly Variant[];
  /** The algorithm with other settings than its examples. */
  vary(settings: Record<string, unknown>): Variant;
};
