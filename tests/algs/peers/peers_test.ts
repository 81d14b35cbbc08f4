/**
 * Ours under `profile: openrlhf`, `verl` and `feynrl` against what those compute, restated in
 * `peers.ts`: advantages and the gradient of the loss, relative 1e-6, for random rounds with a KL,
 * with groups of equal rewards and with completions without a token. Where a profile says that
 * equality ends, the difference is what it says.
 */
import { deepStrictEqual, match, ok, throws } from "node:assert/strict";
import {
  AlgorithmChoice,
  ALGORITHMS,
  creditOf,
  type EvaluatedSequence,
  expressionsOf,
  ONLINE_ALGORITHMS,
  profileOf,
  profilesOf,
} from "../../../algs/mod.ts";
import { type PeerRound, PEERS } from "./peers.ts";
import { randomStep, uniform } from "../properties/steps.ts";
import { runTorch } from "../drivers/torch.ts";

const GROUP = 3;

type Kind = { equal: "none" | "first" | "all"; empty: boolean };
const KINDS: Kind[] = (["none", "first", "all"] as const).flatMap((equal) =>
  [false, true].map((empty) => ({ equal, empty }))
);

/**
 * Two groups of three, the first or all of equal rewards, whose mean is exact: peers divide its
 * rounding by their epsilon. One completion may have no token.
 */
function roundOf(seed: number, { equal, empty }: Kind) {
  const { sequences } = randomStep(seed, { pairs: false, empty });
  const next = uniform(seed + 50);
  const grouped = sequences.map((one, s) => ({ ...one, group: Math.floor(s / GROUP) }));
  const same = (s: number) => equal === "all" || (equal === "first" && s < GROUP);
  return {
    sequences: grouped,
    reward: grouped.map((_, s) => (same(s) ? 0.5 : Math.round(4 * next()) / 2)),
  };
}

/** A column of sampled tokens alone. */
function sampled(sequences: readonly EvaluatedSequence[], name: string): number[][] {
  return sequences.map(({ mask, inputs }) => (inputs[name] as number[]).filter((_, t) => mask[t]));
}

/** A column of sampled tokens over whole sequences. */
function placed({ mask }: EvaluatedSequence, row: readonly number[]): number[] {
  const remaining = row.values();
  return mask.map((bit) => (bit ? remaining.next().value! : NaN));
}

function near(
  actual: number[][],
  expected: number[][],
  { what, factor = 1 }: { what: string; factor?: number },
): void {
  const scale = Math.max(1e-12, ...expected.flat().map(Math.abs));
  const misses = expected.flatMap((row, i) =>
    row.map((x, t) => Math.abs(x - factor * actual[i]![t]!))
  );
  deepStrictEqual(actual.map(({ length }) => length), expected.map(({ length }) => length), what);
  ok(
    Math.max(0, ...misses) <= 1e-6 * scale,
    `${what}: ours ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`,
  );
}

/** A round as a peer reads it. */
function peerRound(
  sequences: readonly EvaluatedSequence[],
  { reward, settings }: { reward: number[]; settings: Record<string, unknown> },
): PeerRound {
  const column = (name: string) => sampled(sequences, name);
  return {
    group_size: GROUP,
    reward,
    logp: column("logp"),
    old_logp: column("old_logp"),
    ref_logp: column("ref_logp"),
    values: column("values"),
    old_values: column("old_values"),
    kl_coef: (settings.kl_coef as number | undefined) ?? 0,
  };
}

/** Our credit of the same round, its advantages for every sampled token. */
function ours(choice: AlgorithmChoice, { reward, old_logp, ref_logp, old_values }: PeerRound) {
  const length = old_logp.map((row) => row.length);
  const group = reward.map((_, s) => Math.floor(s / GROUP));
  const assigned = creditOf(choice, {
    reward,
    length,
    group,
    stop: reward.map(() => "stop" as const),
    old_logp,
    ref_logp,
    values: old_values,
    bootstrap: reward.map(() => 0),
    coef: {},
  });
  const advantage = assigned.advantage.map((value: number | number[], i: number) =>
    Array.isArray(value) ? value : new Array<number>(length[i]!).fill(value)
  );
  return { ...assigned, advantage };
}

/** FeynRL has no default for these, and drops groups of equal rewards in its dapo. */
const FRAMEWORK_SETTINGS: Record<string, Record<string, unknown>> = {
  feynrl: { gamma: 1, lambda: 1 },
};
const differs = (framework: string, name: string, { equal }: Kind) =>
  framework === "feynrl" && name === "dapo" && equal !== "none";

for (const [framework, algorithms] of Object.entries(PEERS)) {
  for (const [name, peer] of Object.entries(algorithms)) {
    Deno.test(`under profile ${framework} ${name} has its advantages and gradient`, async () => {
      const { settings } = profileOf(framework, name)!;
      const { shape } = ALGORITHMS[name as keyof typeof ALGORITHMS].config;
      const changes = Object.entries(FRAMEWORK_SETTINGS[framework] ?? {}).filter(([setting]) =>
        setting in shape
      );
      const choice = AlgorithmChoice.parse({
        name,
        profile: framework,
        ...settings,
        ...Object.fromEntries(changes),
      });
      const { loss, value_loss } = expressionsOf(choice);
      const taught: number[] = [];
      for (const [i, kind] of KINDS.filter((kind) => !differs(framework, name, kind)).entries()) {
        for (const seed of [3 * i + 1, 3 * i + 2]) {
          const what = `${framework} ${name} ${JSON.stringify({ ...kind, seed })}`;
          const { sequences, reward } = roundOf(seed, kind);
          const round = peerRound(sequences, { reward, settings });
          const assigned = ours(choice, round);
          const theirs = peer.compute(round);
          const { advantage } = assigned;
          near(advantage, theirs.advantage, {
            what: `advantage ${what}`,
            factor: peer.advantage_factor?.(round),
          });
          const step = {
            sequences: sequences.map((one, i) => ({
              ...one,
              inputs: {
                ...one.inputs,
                advantage: placed(one, advantage[i]!),
                behaviour_logp: one.inputs.old_logp!, // FeynRL has the sampler's alone.
                ...(assigned.returns && { returns: placed(one, assigned.returns[i]!) }),
              },
            })),
          };
          const cuts = [[[[...sequences.keys()]]]];
          const expressions = { logp: loss, ...(value_loss && { values: value_loss }) };
          const cases = Object.values(expressions).map((expression) => ({
            expression,
            step,
            cuts,
          }));
          const outcomes = await runTorch(cases);
          for (const [k, input] of (Object.keys(expressions) as ("logp" | "values")[]).entries()) {
            const ours = outcomes[k]![0]!.gradients[input]!.map((row, i) =>
              row.filter((_, t) => sequences[i]!.mask[t])
            );
            const factor = input === "logp" ? peer.gradient_factor?.(round) : 1;
            near(ours, theirs[input]!, { what: `gradient of ${input} ${what}`, factor });
          }
          taught.push(Math.max(...theirs.logp.flat().map(Math.abs)));
        }
      }
      ok(
        taught.filter((size) => size > 1e-4).length > 2,
        `nothing was compared: gradients of at most ${taught}`,
      );
    });
  }
}

/** OpenRLHF's, by what stands between a reward and its clip at ±10. */
const CLIPPED: Record<string, "reward" | "centered" | "zscore"> = {
  ppo: "reward",
  reinforce_plus_plus: "reward",
  dr_grpo: "centered",
  reinforce_plus_plus_baseline: "centered",
  grpo: "zscore",
  gspo: "zscore", // Of few samples it never comes to 10.
};

Deno.test("under profile openrlhf rewards beyond 10 differ as it says, by its clip", () => {
  deepStrictEqual(Object.keys(CLIPPED).sort(), Object.keys(PEERS.openrlhf!).sort());
  const { sequences } = roundOf(7, { equal: "none", empty: false });
  for (const [name, clips] of Object.entries(CLIPPED)) {
    const { settings, ends } = profileOf("openrlhf", name)!;
    ok(
      ends.includes(
        "OpenRLHF clips a reward at ±10, after the group's baseline if there is one; ours is " +
          "unclipped.",
      ),
    );
    const choice = AlgorithmChoice.parse({ name, ...settings });
    const peer = PEERS.openrlhf![name]!;
    const round = (reward: number[]) => peerRound(sequences, { reward, settings });
    const compare = (rewards: number[], theirs: number[]) => {
      const factor = peer.advantage_factor?.(round(theirs));
      near(ours(choice, round(rewards)).advantage, peer.compute(round(theirs)).advantage, {
        what: name,
        factor,
      });
    };
    const mean = clips === "reward" ? 0 : 100; // Of both groups, before and after the clip.
    const rewards = (most: number) => [most, -most, 0, 4, -4, 0].map((reward) => mean + reward);
    compare(rewards(9), rewards(9));
    if (clips === "zscore") {
      compare(rewards(30), rewards(30));
    } else {
      compare(rewards(10), rewards(30));
      throws(() => compare(rewards(30), rewards(30)), name);
    }
  }
});

Deno.test("every profile of openrlhf, verl and feynrl that learns from rewards is compared", () => {
  const online = Object.keys(ONLINE_ALGORITHMS);
  for (const framework of Object.keys(PEERS)) {
    const profiled = online.filter((name) => profileOf(framework, name) !== null);
    deepStrictEqual(Object.keys(PEERS[framework]!).sort(), profiled.sort(), framework);
  }
});

Deno.test("every profile and its page name the commit or release that it is from", async () => {
  for (const name of Object.keys(ALGORITHMS)) {
    const page = await Deno.readTextFile(
      new URL(`../../../docs/algorithms/${name}.md`, import.meta.url),
    );
    for (const framework of profilesOf(name)) {
      const { source, about } = profileOf(framework, name)!;
      match(source.date, /^202\d-\d\d-\d\d$/);
      ok(page.includes(about), `${name}'s page does not name ${about}`);
      if ("commit" in source) {
        match(source.commit, /^[0-9a-f]{40}$/);
        match(
          about,
          new RegExp(`^${source.name} ${source.commit.slice(0, 12)} of ${source.date}$`),
        );
        ok(
          page.includes(`${source.repository}/tree/${source.commit}`),
          `${name}'s page does not link ${about}`,
        );
      } else {
        match(source.sha256, /^[0-9a-f]{64}$/);
        match(about, new RegExp(`^${source.name} ${source.release}$`));
      }
    }
  }
});

Deno.test("profile openrlhf takes the KL after the z-score: equal rewards learn no noise", () => {
  const round = {
    reward: [1, 1, 0, 1],
    group: [0, 0, 1, 1],
    length: [1, 1, 1, 1],
    stop: Array<"stop">(4).fill("stop"),
    old_logp: [[-1], [-1.2], [-1], [-1]],
    ref_logp: [[-1.1], [-1.1], [-1], [-1]],
    coef: {},
  };
  for (const name of ["grpo", "gspo"] as const) {
    const { settings } = profileOf("openrlhf", name)!;
    const credit = (kl_in: "reward" | "advantage") =>
      creditOf(AlgorithmChoice.parse({ name, ...settings, kl_in, kl_scaled: true }), round)
        .advantage.flat();
    const after = credit("advantage");
    ok(
      Math.abs(after[0]! + 0.001) < 1e-9 && Math.abs(after[1]! - 0.001) < 1e-9,
      `${name}: ${after}`,
    );
    ok(
      credit("reward").slice(0, 2).every((a) => Math.abs(a) > 0.7),
      "before it the noise is of unit size",
    );
  }
});
