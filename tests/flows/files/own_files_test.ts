import { deepStrictEqual, ok } from "node:assert/strict";
import { isNamed } from "../../../engine/mod.ts";
import { OWN_NAMES } from "../../../flows/mod.ts";

const VERSION = "0123456789ab";
const WEIGHTS = "0123456789abcdef";

const EXAMPLES: { [name in keyof typeof OWN_NAMES]: string[] } = {
  checkpoint: [
    `000001-${VERSION}-1-1`,
    `1234567-${VERSION}-12-3`,
    `000001-${VERSION}-now-01234567`,
    `000001-${VERSION}-handover-01234567`,
    `.universal.000001-${VERSION}-1-1`,
  ],
  weights: [WEIGHTS],
  unfinished_weights: [`.${WEIGHTS}.tmp`, `.${WEIGHTS}.7.old`],
  unfinished_model: [".model.tmp", ".final-1.0.3.tmp", ".final.3.old"],
  hub: ["hub.json", `hub.json.${WEIGHTS}`],
  logs: ["attempt_1", "attempt_12"],
  verifying: ["verify-01234567"],
  rescoring: ["rescore-01234567"],
};

Deno.test("OWN_NAMES knows every name that Holdfast gives", () => {
  for (const [name, examples] of Object.entries(EXAMPLES)) {
    const pattern = OWN_NAMES[name as keyof typeof OWN_NAMES];
    for (const example of examples) ok(isNamed(example, pattern), `${name}: ${example}`);
  }
});

Deno.test("OWN_NAMES takes no name of one kind for another", () => {
  for (const [name, pattern] of Object.entries(OWN_NAMES)) {
    const others = Object.entries(EXAMPLES).flatMap(([of, examples]) =>
      of === name ? [] : examples
    );
    // Weights that are unfinished are named as an unfinished model is.
    const alike = name === "unfinished_model" ? EXAMPLES.unfinished_weights : [];
    deepStrictEqual(others.filter((other) => isNamed(other, pattern)), alike, name);
  }
});

Deno.test("OWN_NAMES leaves a person's names alone, and those that only begin or end alike", () => {
  const theirs = ["model", "notes.txt", "best", ".", "..", "", "my-checkpoint", `${WEIGHTS}.bak`];
  const longer = Object.values(EXAMPLES).flat().flatMap((name) => [`x${name}`, `${name} copy`]);
  for (const [name, pattern] of Object.entries(OWN_NAMES)) {
    deepStrictEqual([...theirs, ...longer].filter((one) => isNamed(one, pattern)), [], name);
  }
});
