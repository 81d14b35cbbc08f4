import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { tokenMean } from "../../../algs/mod.ts";
import { refused, trace } from "./refused.ts";

Deno.test("Expr throws when it is used as a number, text or JSON", () => {
  refused(0, /has no value while the loss is traced/, ({ logp }) => {
    // @ts-expect-error No ordinary comparison.
    return { loss: logp > 1 ? tokenMean(logp) : tokenMean(logp.neg()) };
  });
  refused(0, /has no value/, ({ logp }) => ({ loss: tokenMean(logp.mul(Number(`${logp}`))) }));
  refused(
    0,
    /has no value/,
    ({ logp }) => ({ loss: tokenMean(logp), metrics: { [JSON.stringify(logp)]: tokenMean(logp) } }),
  );
  refused(0, /not finite/, ({ logp }) => ({ loss: tokenMean(logp.mul(Infinity)) }));
  refused(0, /lo must be at most hi/, ({ logp }) => ({ loss: tokenMean(logp.clamp(1, 0)) }));
});

Deno.test("Expr's operations have the kind and the operands that they are written with", () => {
  trace(({ logp, n_tokens }) => {
    const sum = logp.sub(n_tokens);
    deepStrictEqual([sum.kind, sum.operation, sum.operands.length], ["token", { op: "sub" }, 2]);
    strictEqual(sum.operands[0], logp);
    const bounded = logp.clamp(-Infinity, 2);
    deepStrictEqual(bounded.operation, { op: "clamp", lo: null, hi: 2 });
    deepStrictEqual(logp.mul(3).operands[1]!.operation, { op: "scalar", value: 3 });
    return { loss: tokenMean(logp) };
  });
});
