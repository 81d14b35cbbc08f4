/** What may happen to homes, as arbitraries of `fast-check`, and what they have found. */
import fc from "fast-check";
import type { MemoryStore } from "../../../testing/mod.ts";
import type { testSchema } from "../../postgres.ts";
import { type Step, World } from "./deletion_world.ts";
import { REMOVING_STAGES } from "../../flows/stages/removing_stages.ts";

const n = fc.nat(5);
const folder = fc.constantFrom("runs" as const, "checkpoints" as const, "logs" as const);
const is = <T extends string>(...names: T[]) => fc.constantFrom(...names);
const gc = fc.record({
  do: is("gc"),
  home: n,
  shared: fc.boolean(),
  logs: fc.boolean(),
  dry_run: fc.boolean(),
});
const stage = fc.record({
  do: is("stage"),
  home: n,
  shared: fc.boolean(),
  stage: is(...REMOVING_STAGES),
  run: n,
});
/**
 * Any that a run may have; often the beginning of another one's, or a name that is ours elsewhere.
 */
const id = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
  fc.stringMatching(/^[a0][a0._-]{0,3}$/),
  is(
    "a-copy",
    "shared0",
    "home0",
    "000001",
    "publications",
    "set_aside",
    "attempt_0",
    "0123456789abcdef",
  ),
);
/**
 * Of the first runs: one is the beginning of the other, and neither has the id of one that is
 * there.
 */
export const ids = fc.tuple(id, fc.stringMatching(/^[A-Za-z0-9._-]{1,3}$/))
  .map(([one, more]) => [one.slice(0, 120), one.slice(0, 120) + more])
  .filter((both) => !both.some((one) => /^shared[01]$/.test(one)));
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: gc },
  { weight: 6, arbitrary: stage },
  {
    weight: 3,
    arbitrary: fc.record({
      do: is("link_inside"),
      home: n,
      folder: is("runs", "checkpoints"),
      run: n,
      to: n,
    }),
  },
  fc.record({
    do: is("run"),
    home: n,
    shared: fc.boolean(),
    run: id,
  }),
  fc.record({
    do: is("link_folder"),
    home: n,
    folder: is("runs", "checkpoints", "logs", "artifacts"),
    to: n,
  }),
  fc.record({ do: is("link_run", "swap", "copy_run"), home: n, folder, from: n, to: n }),
  fc.record({
    do: is("lose"),
    home: n,
    what: is("nonce", "stores", "journal", "owner", "run", "folder"),
    at: n,
  }),
  fc.record({ do: is("garble"), home: n, what: is("nonce", "stores", "owner"), at: n }),
  fc.record({ do: is("move", "copy"), home: n }),
);
/**
 * Whatever was done, a run of every home goes on at the end, and every home collects with each of
 * its journals.
 */
const LAST: Step[] = [0, 1, 2].flatMap((home): Step[] => [
  ...REMOVING_STAGES.map((stage): Step => ({ do: "stage", home, shared: false, stage, run: 0 })),
  ...[false, true].map((shared): Step => ({ do: "gc", home, shared, logs: true, dry_run: false })),
]);

/** What the property has found. */
export const FOUND: [string[], Step[]][] = [
  // The directory of a run of a journal that is not open was a link, and the home had forgotten
  // that journal.
  [["A", "A-"], [
    { do: "link_run", home: 0, folder: "runs", from: 5, to: 0 },
    { do: "garble", home: 0, what: "stores", at: 0 },
  ]],
  // The home's folder became a link to the same folder of its copy.
  [["A", "A-"], [
    { do: "copy", home: 0 },
    { do: "link_folder", home: 0, folder: "runs", to: 2 },
  ]],
  // Its artifacts too. A home that resumes a run names itself in `artifacts/homes`.
  [["a", "a-"], [
    { do: "copy", home: 0 },
    { do: "link_folder", home: 0, folder: "artifacts", to: 2 },
  ]],
  // The checkpoints of two runs changed places, and one had lost its owner.
  [["a", "aa"], [
    { do: "garble", home: 0, what: "owner", at: 1 },
    { do: "swap", home: 0, folder: "checkpoints", from: 2, to: 1 },
  ]],
];

type NewShared = () => MemoryStore | ReturnType<ReturnType<typeof testSchema>["open"]>;

/** What removed anything of a world in which all this was done. */
export async function removers(
  newShared: NewShared,
  [ids, steps]: [string[], Step[]],
): Promise<Set<string>> {
  const world = await World.make(newShared, ids);
  try {
    for (const step of [...steps, ...LAST]) await world.take(step);
    return world.removed;
  } finally {
    await world.dispose();
  }
}
