import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { FakeGroup, type StartGroup } from "../../testing/fake_group.ts";
import { failureReport } from "../../testing/mod.ts";

const start = (changes: Partial<StartGroup> = {}) =>
  ({
    group: "trainer",
    generation: 2,
    role: "trainer",
    spec_hash: "h",
    ranks: 2,
    ...changes,
  }) as StartGroup;
const script = { operations: {}, info: { trainer: { layers: 3 } } };

Deno.test("FakeGroup is ready at once, with all of its ranks", () => {
  const { state, reported, held } = new FakeGroup(start(), script);
  strictEqual(state, "ready");
  deepStrictEqual([reported.group, reported.generation], ["trainer", 2]);
  deepStrictEqual(reported.ranks.map(({ rank, state }) => [rank, state]), [
    [0, "ready"],
    [1, "ready"],
  ]);
  deepStrictEqual([held.role, held.spec_hash, held.info], ["trainer", "h", { layers: 3 }]);
});

Deno.test("FakeGroup has the ranks of its own host alone", () => {
  const part = { first: 4, ranks: 2, rendezvous: null } as StartGroup["part"];
  const { reported } = new FakeGroup(start({ ranks: 8, part }), script);
  deepStrictEqual(reported.ranks.map(({ rank }) => rank), [4, 5]);
});

Deno.test("FakeGroup fails to start where the script says so", () => {
  const failStart = (group: string, generation: number) =>
    generation === 2 ? [failureReport({ message: `${group} broke` })] : null;
  const broken = new FakeGroup(start(), { ...script, failStart });
  deepStrictEqual(broken.failures.map(({ message }) => message), ["trainer broke"]);
  deepStrictEqual([broken.state, broken.held.info], ["failed", {}]);
  strictEqual(new FakeGroup(start({ generation: 3 }), { ...script, failStart }).state, "ready");
});

Deno.test("FakeGroup.end() aborts what runs, and its ranks exit", () => {
  const group = new FakeGroup(start(), script);
  group.end("stopped", "enough");
  strictEqual(group.ended.signal.reason.message, "enough");
  deepStrictEqual([group.reported.state, group.reported.ranks[0]!.state], ["stopped", "exited"]);
});
