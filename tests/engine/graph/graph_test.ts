import { notStrictEqual, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { graph } from "../../../engine/mod.ts";
import { Config, online, start } from "../online_graph.ts";

Deno.test("the graph's hash covers names, versions and edges, and no literals", () => {
  const { hash } = online.build({ rounds: 6 });
  strictEqual(online.build({ rounds: 7 }).hash, hash);
  notStrictEqual(online.build({ rounds: 6, lag: 1 }).hash, hash);
  const wired = (version: number, seed: number) =>
    graph("g", z.strictObject({}), (g) => g.stage({ ...start, version }, { seed })).build({}).hash;
  strictEqual(wired(1, 1), wired(1, 2));
  notStrictEqual(wired(1, 1), wired(2, 1));
});

Deno.test("a value of a round cannot be read outside it", () => {
  const leaking = graph("leaking", Config, (g) => {
    const policy = g.stage(start, { seed: 1 });
    let inner = policy;
    g.loop(
      "round",
      { times: 1, carry: { policy } },
      (r) => ({ policy: inner = r.stage(start, { seed: 2 }) }),
    );
    return inner;
  });
  throws(() => leaking.build({ rounds: 1 }), /a value of a different scope/);
});
