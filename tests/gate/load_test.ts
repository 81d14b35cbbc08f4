import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { childrenPart, countedSeconds, cpuSeconds, shareOf } from "./load.ts";

const NONE = { machine: 0, children: 0 };

Deno.test("a file's seconds count on a quiet machine, its CPU time while others compute", () => {
  const counted = (children: number, others: number) =>
    countedSeconds(20, {
      before: NONE,
      after: { machine: children + others, children },
      cores: 2,
    });
  strictEqual(counted(12, 0.1), 20);
  strictEqual(counted(0.2, 0), 20, "one that sleeps");
  strictEqual(counted(12, 30), 6);
});

Deno.test("ownPart() is what others leave of the machine", () => {
  const after = (children: number, machine: number) => childrenPart(NONE, { children, machine });
  deepStrictEqual([after(12, 12), after(12, 48), after(12, 11.9)], [1, 0.25, 1]);
});

Deno.test("shareOf() is all of the time of a process that has a core, else its part", () => {
  deepStrictEqual([0, 1, 2, 4, 10].map((load) => shareOf(load, 2)), [1, 1, 1, 0.5, 0.2]);
});

Deno.test("cpuSeconds() counts a child that has ended, for the machine too", async () => {
  const before = cpuSeconds();
  const computes = "for (let i = 0, x = 0; i < 3e8; i++) x = (x * 31 + i) | 0";
  await new Deno.Command(Deno.execPath(), { args: ["eval", computes] }).output();
  const after = cpuSeconds();
  const children_s = after.children - before.children;
  ok(children_s > 0.05, `${children_s}`);
  ok(after.machine - before.machine > children_s / 2, "the machine's are counted at other moments");
});
