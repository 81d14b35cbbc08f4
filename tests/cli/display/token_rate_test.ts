import { strictEqual } from "node:assert/strict";
import { TokenRate } from "../../../cli/display/token_rate.ts";

const SECOND = 1000;

Deno.test("TokenRate of a step that takes longer than ten seconds is its tokens by its time", () => {
  const rate = new TokenRate();
  rate.add({ since: 5 * SECOND, at: 35 * SECOND, tokens: 3000 });
  rate.roundClosed(35 * SECOND);
  strictEqual(rate.perSecond(35 * SECOND), 100);
});

Deno.test("TokenRate is the mean of a round, whose parts differ in speed and in length", () => {
  const rate = new TokenRate();
  rate.roundClosed(0);
  rate.add({ since: 0, at: 60 * SECOND, tokens: 6000 });
  rate.add({ since: 60 * SECOND, at: 80 * SECOND, tokens: 10_000 });
  rate.roundClosed(80 * SECOND);
  strictEqual(rate.perSecond(80 * SECOND), 200);
  strictEqual(rate.perSecond(100 * SECOND), 175); // 40 s of the slow part, the fast one, 20 s without any.
  strictEqual(rate.perSecond(160 * SECOND), 0);
});

Deno.test("TokenRate adds work that runs at the same time", () => {
  const rate = new TokenRate();
  rate.add({ since: 0, at: 20 * SECOND, tokens: 2000 });
  rate.add({ since: 0, at: 20 * SECOND, tokens: 1000 });
  rate.roundClosed(20 * SECOND);
  strictEqual(rate.perSecond(20 * SECOND), 150);
});

Deno.test("TokenRate of quick rounds is a mean over ten seconds, or since the first work", () => {
  const rate = new TokenRate();
  strictEqual(rate.perSecond(0), 0);
  for (let round = 1; round <= 20; round++) {
    rate.add({ since: (round - 1) * SECOND, at: round * SECOND, tokens: round * 100 });
    rate.roundClosed(round * SECOND);
    if (round === 2) strictEqual(rate.perSecond(2 * SECOND), 150);
  }
  strictEqual(rate.perSecond(20 * SECOND), 1550);
  strictEqual(rate.perSecond(25 * SECOND), 900);
});
