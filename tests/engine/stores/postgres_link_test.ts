import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { InfrastructureError, InvalidInputError, ManualClock } from "../../../engine/mod.ts";
import { arrayOf, PostgresLink } from "../../../engine/stores/postgres_link.ts";

const refused = () => Object.assign(new Error("refused"), { code: "ECONNREFUSED" });

/** A link that nothing connects: `patiently` calls what it is given. */
function linked(options: { patience_ms?: number } = {}) {
  const [clock, notices] = [new ManualClock(), [] as string[]];
  const link = new PostgresLink("postgres://me@localhost/runs", {
    ...options,
    clock,
    onNotice: (text) => notices.push(text),
  });
  return { link, clock, notices };
}

Deno.test("arrayOf() quotes texts, and knows NULL from a text that says so", () => {
  strictEqual(arrayOf([]), "{}");
  strictEqual(arrayOf([1, null, -2]), "{1,NULL,-2}");
  strictEqual(arrayOf(["", "NULL", "a,b", "{}"]), '{"","NULL","a,b","{}"}');
  strictEqual(arrayOf(['say "hi"', "back\\slash"]), '{"say \\"hi\\"","back\\\\slash"}');
});

Deno.test("patiently() waits longer each time, up to a second, and says so once", async () => {
  const { link, clock, notices } = linked();
  const tries: [at_ms: number, again: boolean][] = [];
  const answer = link.patiently("read", (again) => {
    tries.push([clock.monotonic(), again]);
    return tries.length < 9 ? Promise.reject(refused()) : Promise.resolve("here");
  });
  await clock.untilSleeping();
  await clock.advance(5000);
  strictEqual(await answer, "here");
  deepStrictEqual(tries.map(([at_ms]) => at_ms), [0, 20, 60, 140, 300, 620, 1260, 2260, 3260]);
  deepStrictEqual(tries.map(([, again]) => again), [false, ...Array(8).fill(true)]);
  deepStrictEqual(notices, [
    `${link.where} is away: refused. Waiting for it up to 60 s`,
    `${link.where} is back`,
  ]);
});

Deno.test("patiently() gives up when its patience has ended", async () => {
  const { link, clock } = linked({ patience_ms: 100 });
  let tries = 0;
  const failed = rejects(
    link.patiently("read", () => {
      tries++;
      return Promise.reject(refused());
    }),
    (error) => error instanceof InfrastructureError && error.facts.away_ms === 140,
  );
  await clock.untilSleeping();
  await clock.advance(1000);
  await failed;
  strictEqual(tries, 4);
});

Deno.test("patiently() does not repeat what the server refuses", async () => {
  const { link } = linked();
  let tries = 0;
  const wrong = () => {
    tries++;
    return Promise.reject(Object.assign(new Error("no"), { code: "28P01" }));
  };
  await rejects(link.patiently("read", wrong), InvalidInputError);
  strictEqual(tries, 1);
});

Deno.test("close() ends the wait for a server that is away", async () => {
  const { link, clock } = linked();
  const failed = rejects(link.patiently("read", () => Promise.reject(refused())), {
    message: `Cannot use the journal ${link.where} because it is closed`,
  });
  await clock.untilSleeping();
  await link.close();
  await failed;
});
