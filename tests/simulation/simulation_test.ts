import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { MemoryStore } from "../../testing/mod.ts";
import { chaosOf } from "./chaos.ts";
import { judge, tell } from "./engines.ts";
import { planOf } from "./workload.ts";

const SEEDS = 2000;

Deno.test(`${SEEDS} histories of crashes, freezes and takeovers end as undisturbed`, async () => {
  const broken: string[] = [];
  for (let seed = 1; seed <= SEEDS && broken.length < 5; seed++) {
    const [first] = await judge(seed);
    if (first) broken.push(`deno run -A tests/simulation/run.ts --seed ${seed} --trace # ${first}`);
  }
  deepStrictEqual(broken, []);
});

Deno.test("one seed is one history, down to the last event", async () => {
  for (const seed of [3, 9, 26, 27, 808]) {
    const [first, second] = [[] as string[], [] as string[]];
    for (const lines of [first, second]) {
      await tell({
        seed,
        plan: planOf(seed),
        chaos: chaosOf(seed),
        trace: (line) => lines.push(line),
      });
    }
    ok(first.length > 100);
    deepStrictEqual(second, first);
  }
});

/** Appends whatever epoch it is given. */
class Unfenced extends MemoryStore {
  override async append(
    ...[run, , rows]: Parameters<MemoryStore["append"]>
  ): ReturnType<MemoryStore["append"]> {
    return await super.append(run, (await this.head(run))!.epoch, rows);
  }
}

/** Says that rows are durable and forgets every hundredth append. */
class Forgetful extends MemoryStore {
  #calls = 0;
  override async append(
    ...append: Parameters<MemoryStore["append"]>
  ): ReturnType<MemoryStore["append"]> {
    if (++this.#calls % 100 > 0) return await super.append(...append);
    return { fenced: false, last_seq: (await this.head(append[0]))!.last_seq };
  }
}

Deno.test("the rules see a store that does not fence, and one that forgets", async () => {
  for (const Broken of [Unfenced, Forgetful]) {
    let seen = 0;
    for (let seed = 1; seed <= 400 && seen === 0; seed++) {
      seen = (await judge(seed, { store: (options) => new Broken(options) })).length;
    }
    ok(seen > 0, `${Broken.name}: no rule is broken in 400 seeds`);
  }
  strictEqual((await judge(1)).length, 0);
});
