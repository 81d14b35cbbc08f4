import { Expression } from "../../data/mod.ts";
import { canonical } from "./canonical.ts";
import { LossError } from "./errors.ts";
import { Expr } from "./expr.ts";
import { type InputName, INPUTS } from "./inputs.ts";
import { coefficient, input } from "./operations.ts";
import { checkRules } from "./rules.ts";

/** What a loss reads from. `Coef`: the coefficients that the algorithm declares. */
export type LossInputs<Coef extends string = never> =
  & { readonly [N in InputName]: Expr<(typeof INPUTS)[N]["kind"]> }
  & { readonly coef: { readonly [N in Coef]: Expr<"step"> } };

/** What a loss returns: one number per step to minimise, and numbers to watch. */
export type LossParts = { loss: Expr<"step">; metrics?: Record<string, Expr<"step">> };

/**
 * A loss: called once, while tracing. `config` contains plain numbers, so an ordinary `if` selects
 * terms.
 */
export type LossFunction<Config, Coef extends string = never> = (
  inputs: LossInputs<Coef>,
  config: Config,
) => LossParts;

/** Calls the loss on symbols and returns what it would compute, checked. */
export function traceLoss<Config, Coef extends string = never>(
  loss: LossFunction<Config, Coef>,
  config: Config,
  { coef = [] }: { coef?: readonly Coef[] } = {},
): Expression {
  const names = Object.keys(INPUTS) as InputName[];
  const inputs = {
    ...Object.fromEntries(names.map((name) => [name, input(name)])),
    coef: Object.fromEntries(coef.map((name) => [name, coefficient(name)])),
  } as unknown as LossInputs<Coef>;
  const parts = loss(inputs, config);
  const metrics = parts.metrics ?? {};
  for (const [name, value] of [["loss", parts.loss] as const, ...Object.entries(metrics)]) {
    if (!((value as unknown) instanceof Expr)) {
      throw new LossError(
        4,
        `Cannot use ${typeof value} as ${name}: a loss returns expressions; scalar(n) makes ` +
          "one of a number",
      );
    }
  }
  const expression = canonical(parts.loss, metrics);
  checkRules(expression);
  return Expression.parse(expression);
}
