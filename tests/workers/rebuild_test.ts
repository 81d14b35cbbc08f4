import { deepStrictEqual, rejects } from "node:assert/strict";
import { z } from "zod";
import { defineRole, NotResident, type Operator, rebuild } from "../../workers/mod.ts";

const held = z.strictObject({ held: z.string() });
const operations = {
  open: { args: z.strictObject({ map: z.string() }), output: held },
  track: { args: z.strictObject({ map: z.string() }), output: z.union([NotResident, held]) },
};
const common = { name: "tracker", module: "m", spec: z.strictObject({}), groups: () => [] };
const tracker = defineRole({
  ...common,
  operations,
  rebuilt: {
    async from_record(ask, { maps }: { maps: string[] }) {
      const answers: string[] = [];
      for (const map of maps) answers.push((await ask("open", { map })).held);
      return { last: (await ask("track", { map: maps.at(-1)! })).held, answers };
    },
  },
});
const CALL = { key: "k", attempt: 1 };

/** A worker that holds the map it opened last, unless it loses it. */
function worker({ loses = false } = {}): { operator: Operator; calls: string[] } {
  const calls: string[] = [];
  let open = "";
  const answer = (op: string, map: string): unknown => {
    if (op === "open") return { held: open = map };
    return loses ? { not_resident: null } : { held: open };
  };
  const operator: Operator = {
    call: (op, args) => {
      const { map } = args as { map: string };
      calls.push(`${op} ${map}`);
      return Promise.resolve({ outputs: [answer(op, map)], blobs: [], generation: 1 });
    },
  };
  return { operator, calls };
}

Deno.test("rebuild() asks what the role declares, and returns its result", async () => {
  const { operator, calls } = worker();
  deepStrictEqual(await rebuild(operator, [tracker, { maps: ["a", "b"] }], CALL), {
    last: "b",
    answers: ["a", "b"],
  });
  deepStrictEqual(calls, ["open a", "open b", "track b"]);
});

Deno.test("rebuild() throws if the worker lost what it had just received", async () => {
  const { operator } = worker({ loses: true });
  await rejects(rebuild(operator, [tracker, { maps: ["a"] }], CALL), /right after loading it/);
});

Deno.test("rebuild() refuses a role that is not rebuilt from a record", async () => {
  const role = defineRole({
    ...common,
    operations: { open: operations.open },
    rebuilt: "by_start",
  });
  await rejects(
    rebuild(worker().operator, [role, undefined as never], CALL),
    /Cannot rebuild a tracker from a record because its role declares another way/,
  );
});
