import { throws } from "node:assert/strict";
import { graph, type Ref } from "../../../engine/mod.ts";
import { Config, draw, sample, score, start, train } from "../online_graph.ts";

Deno.test("graph() wires by type: a wrong type does not compile", () => {
  graph("types", Config, (g) => {
    const policy = g.stage(start, { seed: 1 });
    const prompts = g.stage(draw, { round: policy.field("version") });
    // @ts-expect-error A policy is not a number.
    g.stage(draw, { round: policy });
    // @ts-expect-error A literal of the wrong type.
    g.stage(draw, { round: "1" });
    // @ts-expect-error A field that the stage does not have.
    g.stage(draw, { round: 1, more: 2 });
    // @ts-expect-error A field that is missing.
    g.stage(train, { scores: [1] });
    // @ts-expect-error The mapped stage takes numbers, the list holds strings.
    g.map(score, prompts);
    // @ts-expect-error The mapped stage needs `policy` too.
    g.map(sample, prompts);
    // @ts-expect-error A policy is not a list.
    g.map(sample, policy, { policy });
    // @ts-expect-error A list of strings is not a list of lists.
    g.flat(prompts);
    // @ts-expect-error A policy has no such field.
    policy.field("name");
    const samples: Ref<number[][]> = g.map(sample, prompts, { policy });
    g.map(score, g.flat(samples), { scale: 2 });
    // @ts-expect-error `scale` is a number.
    g.map(score, g.flat(samples), { scale: "2" });
    // @ts-expect-error The body must return what is carried.
    throws(() => g.loop("l", { times: 1, carry: { policy } }, () => ({})));
    // @ts-expect-error What is carried keeps its type.
    g.loop("m", { times: 1, carry: { policy } }, (r) => ({ policy: r.index }));
    const carry = { policy };
    // @ts-expect-error Only what is carried can be read.
    throws(() => g.loop("n", { times: 1, carry }, (r) => ({ policy: r.carried("polcy") })));
    const enough = { times: 1, carry, until: "enough" } as const;
    // @ts-expect-error `until` names a boolean.
    g.loop("o", enough, (r) => ({ policy, enough: r.index }));
    g.loop(
      "p",
      { times: 1, carry: { policy }, until: "enough" },
      (r) => ({ policy: r.carried("policy"), enough: true }),
    );
    // @ts-expect-error An audit answers at once: a promise would not be awaited.
    g.loop("q", { times: 1, carry: { policy }, audit: () => Promise.resolve(null) }, (r) => ({
      policy: r.carried("policy"),
    }));
    // @ts-expect-error A flag is a boolean.
    g.when(policy, () => policy, () => policy);
    // @ts-expect-error Both branches have one type.
    g.when(g.constant(true as boolean), () => policy, () => prompts);
    return g.when(g.constant(true as boolean), () => policy, () => policy);
  }).build({ rounds: 1 });
});
