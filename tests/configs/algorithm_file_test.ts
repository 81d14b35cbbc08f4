import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { withFileFacts } from "../../configs/algorithm_file.ts";
import { changedAlgorithm } from "../../configs/mod.ts";
import { sha256Hex } from "../../engine/mod.ts";
import { DIR, ONLINE, online } from "./parsed.ts";

Deno.test("parseConfig() takes an algorithm in a Python file by its path, with settings beside it or in settings", async () => {
  const source = `${DIR}/my_algorithm.py`;
  const sha256 = sha256Hex(await Deno.readFile(source));
  const long = (settings: Record<string, number>) => ({
    name: "python",
    source,
    settings,
    value_model: false,
    mask_truncated: false,
    refill_batches_max: 0,
    surplus: "discard",
    sha256,
  });
  const algorithm = async (text: string, overrides: string[] = []) => {
    const written = await online(
      overrides,
      ONLINE.replace("algorithm: grpo", `algorithm: ${text}`),
    );
    return written.algorithm as unknown;
  };
  deepStrictEqual(await algorithm("my_algorithm.py"), long({}));
  deepStrictEqual(await algorithm("{ name: my_algorithm.py, clip: 0.1 }"), long({ clip: 0.1 }));
  const whole = "{ name: python, source: my_algorithm.py, settings: { clip: 0.1 } }";
  deepStrictEqual(
    await algorithm(whole, ["algorithm.clip=0.2", "algorithm.kl=1"]),
    long({ clip: 0.2, kl: 1 }),
  );
});

Deno.test("changedAlgorithm() names the file of a recorded configuration that is another one by now", async () => {
  const recorded = await online(
    [],
    ONLINE.replace("algorithm: grpo", "algorithm: my_algorithm.py"),
  );
  strictEqual(await changedAlgorithm(recorded), null);
  strictEqual(await changedAlgorithm(await online()), null);
  const edited = { ...recorded, algorithm: { ...recorded.algorithm, sha256: "0".repeat(64) } };
  strictEqual(await changedAlgorithm(edited), `${DIR}/my_algorithm.py`);
});

Deno.test("a file of the preference flow says whether it outputs scores or reads labels", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-facts-" });
  try {
    const factsOf = async (text: string, flow = "preference", changes: object = {}) => {
      const source = `${dir}/own.py`;
      await Deno.writeTextFile(source, text);
      const { algorithm } = await withFileFacts({ flow, algorithm: { source, ...changes } }) as {
        algorithm: Record<string, unknown>;
      };
      const { value_model: _v, source: _s, sha256: _h, ...facts } = algorithm;
      return facts;
    };
    const score = "def loss(x, c):\n    gap = x.chosen(x.score)\n";
    const label = "def loss(x, c):\n    return x.label\n";
    deepStrictEqual(await factsOf(score), { head: "score" });
    deepStrictEqual(await factsOf(label), { unpaired: { mismatched: false } });
    deepStrictEqual(await factsOf(`MISMATCHED = True\n${label}`), {
      unpaired: { mismatched: true },
    });
    deepStrictEqual(await factsOf(`MISMATCHED: bool = True\n${label}`), {
      unpaired: { mismatched: true },
    });
    deepStrictEqual(await factsOf(`MISMATCHED = False\n${label}`), {
      unpaired: { mismatched: false },
    });
    deepStrictEqual(await factsOf(score, "online"), {});
    deepStrictEqual(await factsOf("# not x.score or x.label\nmodel.score(1)\n"), {});
    deepStrictEqual(
      await factsOf(`"""Not x.score,\nnor x.label."""\nprint('x.score', "x.label")\n`),
      {},
    );
    deepStrictEqual(await factsOf(`tag = "#"; gap = x.chosen(x.score)\n`), { head: "score" });
    deepStrictEqual(await factsOf(score, "preference", { head: null }), { head: null });
    deepStrictEqual(await factsOf(`MISMATCHED = True\n${label}`, "preference", { unpaired: {} }), {
      unpaired: { mismatched: true },
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("a file that may read each reward by itself says so, and a setting decides", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-parts-" });
  try {
    const partsOf = async (credit: string, changes: object = {}) => {
      const source = `${dir}/own.py`;
      await Deno.writeTextFile(source, `def credit(round, c):\n    ${credit}\n`);
      const { algorithm } = await withFileFacts({ algorithm: { source, ...changes } }) as {
        algorithm: { parts?: boolean };
      };
      return algorithm.parts;
    };
    strictEqual(await partsOf("return {'advantage': round.reward}"), undefined);
    strictEqual(await partsOf("return sum(part.paid for part in round.parts)"), true);
    strictEqual(await partsOf("return getattr(round, 'parts')"), true);
    strictEqual(await partsOf("return 'round.parts'"), undefined);
    strictEqual(await partsOf("return round.parts", { parts: false }), false);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
