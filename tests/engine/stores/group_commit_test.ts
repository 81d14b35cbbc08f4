import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { GroupCommit } from "../../../engine/stores/group_commit.ts";

/** Groups of at most two numbers, and the end of each commit in the test's hands. */
function held() {
  const groups: number[][] = [];
  const ends: (() => void)[] = [];
  const writes = new GroupCommit<number, number[]>({
    turn: () => Promise.resolve(),
    load: (waiting) => ({ group: waiting.slice(0, 2), rest: waiting.slice(2) }),
    commit: (group) => {
      groups.push(group);
      return new Promise((resolve) => ends.push(resolve));
    },
  });
  return { writes, groups, ends };
}

const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

Deno.test("GroupCommit commits simultaneous writes together, up to a full group", async () => {
  const { writes, groups, ends } = held();
  for (const write of [1, 2, 3]) writes.add(write);
  deepStrictEqual(groups, []); // Nothing goes in the call that asks for it.
  await settled();
  deepStrictEqual(groups, [[1, 2]]);
  ends.shift()!();
  await settled();
  deepStrictEqual(groups, [[1, 2], [3]]);
});

Deno.test("GroupCommit: one group at a time; idle() waits for what came meanwhile", async () => {
  const { writes, groups, ends } = held();
  writes.add(1);
  await settled();
  writes.add(2);
  writes.add(3);
  let idle = false;
  const waited = writes.idle().then(() => idle = true);
  await settled();
  deepStrictEqual([groups, idle], [[[1]], false]);
  ends.shift()!();
  await settled();
  deepStrictEqual([groups, idle], [[[1], [2, 3]], false]);
  ends.shift()!();
  await waited;
  writes.add(4);
  await settled();
  strictEqual(groups.length, 3);
});

Deno.test("GroupCommit: what is held joins the next group in order, and causes none", async () => {
  const { writes, groups, ends } = held();
  writes.hold(1);
  await settled();
  deepStrictEqual(groups, []);
  writes.add(2);
  await settled();
  deepStrictEqual(groups, [[1, 2]]);
  writes.hold(3);
  const idle = writes.idle();
  ends.shift()!();
  await settled();
  deepStrictEqual(groups, [[1, 2], [3]]);
  ends.shift()!();
  await idle;
});
