import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { asked, type Learned, learnedFrom, table } from "../../bench/reasoning_gym.ts";

const FAMILIES = ["chain_sum", "spell_backward", "gcd"];

function point(round: number | null, family: string, right: number): string {
  const name = `eval/${family}/avg_at_1`;
  const metrics = { [name]: right, [`${name}_low`]: right - 0.1, [`${name}_high`]: right + 0.1 };
  return JSON.stringify({ key: "k", round, metrics });
}

function mixed(round: number, shares: number[]): string {
  const metrics = Object.fromEntries(
    FAMILIES.map((family, i) => [`data/${family}/share`, shares[i]]),
  );
  return JSON.stringify({ key: "m", round, metrics });
}

Deno.test("learnedFrom() orders each family's rounds, and takes the last share", () => {
  const lines = [
    mixed(1, [0.5, 0.25, 0.25]),
    ...FAMILIES.map((family) => point(2, family, 0.5)),
    ...FAMILIES.map((family) => point(null, family, 0.25)),
    mixed(2, [0.25, 0.25, 0.5]),
  ];
  const learned = learnedFrom(`${lines.join("\n")}\n`);
  deepStrictEqual(learned.gcd, {
    curve: [
      { round: 0, right: 0.25, low: 0.15, high: 0.35 },
      { round: 2, right: 0.5, low: 0.4, high: 0.6 },
    ],
    share: 0.5,
  });
  strictEqual(learned.chain_sum.share, 0.25);
});

Deno.test("table() has a row for each family and seed", () => {
  const one = {
    curve: [
      { round: 0, right: 0.25, low: 0.2, high: 0.3 },
      { round: 9, right: 0.5, low: 0.45, high: 0.55 },
    ],
    share: 0.125,
  };
  const learned = Object.fromEntries(FAMILIES.map((family) => [family, one])) as Learned;
  const lines = table({ 1: learned, 2: learned }).split("\n");
  strictEqual(lines.length, 2 + 6);
  strictEqual(lines[2], "| `chain_sum` | 1 | 0.25 (0.20 to 0.30) | 0.50 (0.45 to 0.55) | 0.13 |");
});

Deno.test("bench reasoning_gym reads its flags, and names those that it has", () => {
  deepStrictEqual(asked([]), { seeds: [1, 2, 3], write: false });
  deepStrictEqual(asked(["--write", "--seeds", "4"]), { seeds: [4], write: true });
  const message = /there are --seeds 1,2,3 and --write/;
  for (const wrong of [["--seeds"], ["--seeds", "x"], ["--rounds", "3"], ["--seeds", "1", "2"]]) {
    throws(() => asked(wrong), message);
  }
});
