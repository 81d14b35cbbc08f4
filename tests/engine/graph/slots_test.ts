import { deepStrictEqual, match, ok, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import { type Needs, type Release, Slots } from "../../../engine/graph/slots.ts";
import { bench, NoConfig, runOnce, Sampler, Trainer } from "../fixtures.ts";

const SIZES = { a: 4, b: 2 };

/** Who holds what, in the order in which they got it. */
class Holders {
  readonly got: number[] = [];
  readonly held = new Map<number, { needs: Needs; release: Release }>();
  readonly #slots: Slots;
  #requests = 0;

  constructor(sizes: Record<string, number> = SIZES) {
    this.#slots = new Slots(sizes);
  }

  async ask(needs: Needs): Promise<number> {
    const id = this.#requests++;
    const take = (release: Release) => {
      this.got.push(id);
      this.held.set(id, { needs, release });
    };
    const reserved = this.#slots.reserve(needs);
    if (typeof reserved === "function") take(reserved);
    else reserved.then(take);
    await Promise.resolve();
    return id;
  }

  async release(id: number): Promise<void> {
    this.held.get(id)!.release();
    this.held.delete(id);
    await Promise.resolve();
  }

  used(name: string): number {
    return [...this.held.values()].reduce((sum, { needs }) => sum + (needs[name] ?? 0), 0);
  }
}

const needs = fc.record({ a: fc.integer({ min: 0, max: 4 }), b: fc.integer({ min: 0, max: 2 }) });

Deno.test("Slots serves each request once, all or none, within what there is", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(needs, fc.nat()), { maxLength: 60 }), async (steps) => {
      const holders = new Holders();
      for (const [needs, pick] of steps) {
        await holders.ask(needs);
        const held = [...holders.held.keys()];
        if (pick % 3 > 0 && held.length > 0) await holders.release(held[pick % held.length]!);
        ok(holders.used("a") <= 4 && holders.used("b") <= 2);
      }
      while (holders.held.size > 0) await holders.release([...holders.held.keys()][0]!);
      deepStrictEqual(holders.got.toSorted((a, b) => a - b), steps.map((_, i) => i));
    }),
  );
});

Deno.test("Slots: equal requests are served in the order in which they asked", async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.nat(), { maxLength: 60 }), async (picks) => {
    const holders = new Holders({ a: 3 });
    for (const pick of picks) {
      await holders.ask({ a: 1 });
      const held = [...holders.held.keys()];
      if (pick % 2 === 0) await holders.release(held[pick % held.length]!);
    }
    deepStrictEqual(holders.got, holders.got.toSorted((a, b) => a - b));
  }));
});

Deno.test("Slots: 8 small requests may pass a request for all, and no more", async () => {
  const holders = new Holders({ a: 2 });
  const first = [await holders.ask({ a: 1 }), await holders.ask({ a: 1 })];
  const large = await holders.ask({ a: 2 });
  const order: number[] = [...first];
  for (let i = 0; i < 30 && !holders.held.has(large); i++) {
    order.push(await holders.ask({ a: 1 }));
    await holders.release(order.find((id) => holders.held.has(id))!);
  }
  strictEqual(holders.got.indexOf(large), 2 + 8);
});

Deno.test("Slots: a large request does not delay requests for a different group", async () => {
  const holders = new Holders({ a: 2, b: 1 });
  await holders.ask({ a: 1 });
  await holders.ask({ a: 2 });
  strictEqual(holders.held.has(await holders.ask({ b: 1 })), true);
});

Deno.test("Slots.reserve() refuses what can never be", () => {
  throws(
    () => new Slots({ a: 2 }).reserve({ a: 3 }),
    /Cannot reserve 3 slots of 'a' because there are 2/,
  );
});

Deno.test("a stage that names slots of two groups waits for both together", async () => {
  const one = defineStage({
    name: "one",
    version: 1,
    runs_on: "sampler",
    input: z.strictObject({ item: z.number() }),
    output: z.unknown(),
    run: (input, ctx) => ctx.resource(Sampler).run(ctx, input),
  });
  const both = defineStage({
    name: "both",
    version: 1,
    runs_on: "trainer",
    slots: { trainer: 1, sampler: 2 },
    input: z.strictObject({}),
    output: z.unknown(),
    run: (input, ctx) => ctx.resource(Trainer).run(ctx, input),
  });
  const list = defineStage({
    name: "list",
    version: 1,
    input: z.strictObject({}),
    output: z.array(z.number()),
    run: () => [1, 2, 3],
  });
  const definition = graph("gang", NoConfig, (g) => {
    const held = g.stage(both, {});
    return { held, ones: g.map(one, g.stage(list, {}), {}) };
  });
  const used = bench({ slots: { sampler: 2, trainer: 1 } });
  const running = runOnce(used, definition);
  const task = await used.trainer.task("both");
  strictEqual(used.sampler.started.length, 0);
  task.finish("held");
  strictEqual((await running).status, "done");
  deepStrictEqual(used.sampler.started.length, 3);
});

Deno.test("a stage on the engine may name no slots: it may call stages that need them", () => {
  const define = () =>
    defineStage({
      name: "x",
      version: 1,
      slots: { sampler: 1 },
      input: z.unknown(),
      output: z.unknown(),
      run: () => null,
    });
  throws(define, (error) => {
    match((error as Error).message, /Cannot define stage 'x' with slots/);
    return true;
  });
});
