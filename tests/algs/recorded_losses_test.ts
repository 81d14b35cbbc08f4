/**
 * The losses that runs have recorded, by their hashes: a policy version's id holds the hash of its
 * loss, so the same settings must give the same expression forever. No recorded hash changes.
 * `deno test -A tests/algs/recorded_losses_test.ts -- --record` adds new ones.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { ALGORITHMS, profileOf, profilesOf, traceAlgorithm } from "../../algs/mod.ts";
import type { AnyAlgorithm } from "../../algs/mod.ts";
import { hashJson } from "../../engine/canonical.ts";

type Hashes = Record<string, string>;

const FILE = new URL("./recorded_losses.json", import.meta.url);
const RECORD = JSON.parse(await Deno.readTextFile(FILE)) as Record<string, Hashes>;

/** The hash of each loss by its settings: the defaults, the examples and the profiles. */
function hashesOf(algorithm: AnyAlgorithm, settings: readonly unknown[]): Hashes {
  return Object.fromEntries(
    settings.flatMap((some) =>
      Object.entries(traceAlgorithm(algorithm, some)).map(([loss, expression]) => {
        const name = loss === "loss" ? "" : `${loss} `;
        return [`${name}${JSON.stringify(some)}`, hashJson(expression)];
      })
    ),
  );
}

function settingsToRecord({ name, examples = [] }: AnyAlgorithm): unknown[] {
  const profiles = profilesOf(name).map((profile) => profileOf(profile, name)!.settings);
  return [{}, ...examples, ...profiles];
}

if (Deno.args.includes("--record")) {
  for (const algorithm of Object.values(ALGORITHMS) as AnyAlgorithm[]) {
    const found = hashesOf(algorithm, settingsToRecord(algorithm));
    RECORD[algorithm.name] = { ...found, ...RECORD[algorithm.name] };
  }
  await Deno.writeTextFile(FILE, JSON.stringify(RECORD, null, 2) + "\n");
}

Deno.test("the record holds the losses of 14 algorithms", () => {
  ok(Object.keys(RECORD).length >= 14);
  ok(Object.values(RECORD).every((hashes) => Object.keys(hashes).length > 0));
});

for (const [name, hashes] of Object.entries(RECORD)) {
  Deno.test(`traceAlgorithm() gives the losses of ${name} that runs have recorded`, () => {
    const algorithm: AnyAlgorithm = ALGORITHMS[name as keyof typeof ALGORITHMS];
    const settings = Object.keys(hashes).map((key) => JSON.parse(key.slice(key.indexOf("{"))));
    deepStrictEqual({ ...hashesOf(algorithm, settings) }, hashes);
  });
}
