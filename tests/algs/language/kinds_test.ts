import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { joinKinds } from "../../../algs/language/kinds.ts";
import {
  chosen,
  type Expr,
  type LossFunction,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  tokenMean,
  traceLoss,
} from "../../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

Deno.test("Expr's kind is the finer one of its operands", () => {
  trace(({ logp, score, margin, n_tokens }) => {
    const token: Expr<"token"> = logp.add(perSequenceSum(logp)).mul(n_tokens).sub(1);
    const back: Expr<"token"> = n_tokens.mul(score).mul(logp);
    const sequence: Expr<"sequence"> = perSequenceMean(logp).div(n_tokens);
    const pair: Expr<"pair"> = scalar(0).lt(chosen(sequence).sub(rejected(sequence)).sub(margin));
    // @ts-expect-error A token is no sequence.
    const wrong: Expr<"sequence"> = logp.mul(sequence);
    deepStrictEqual([token, back, sequence, pair, wrong].map(({ kind }) => kind), [
      "token",
      "token",
      "sequence",
      "pair",
      "token",
    ]);
    return { loss: tokenMean(logp) };
  });
});

Deno.test("joinKinds() is the finest kind, in any order", () => {
  strictEqual(joinKinds(["step", "sequence", "token"]), "token");
  strictEqual(joinKinds(["token", "step", "sequence"]), "token");
  strictEqual(joinKinds(["step", "pair", "step"]), "pair");
  strictEqual(joinKinds(["step"]), "step");
});

Deno.test("joinKinds() has no kind for a pair with a sequence or a token", () => {
  strictEqual(joinKinds(["pair", "sequence"]), null);
  strictEqual(joinKinds(["token", "step", "pair"]), null);
});
