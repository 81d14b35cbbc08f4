import type { StoreName } from "./campaign_stores.ts";

export type Kill = {
  store: StoreName;
  fault: string;
  places: string[];
  phase: string;
  /** Faults that came to pass, of those drawn. */
  fired: number;
  faults: number;
  engine_deaths: number;
  digest_equal: boolean;
  ledger_equal: boolean;
  /** What of `recorded_rules.ts` the journal breaks. */
  broken: string[];
  batches_redone: number;
  groups_extra: number;
  groups_in_flight: number;
  orphans: number;
  seconds: number;
  status: string;
};

/** Shown of each group of kills. */
function line(name: string, kills: Kill[]): string {
  const equal =
    kills.filter((k) => k.digest_equal && k.ledger_equal && k.broken.length === 0).length;
  const redid = kills.filter((k) => k.batches_redone > 0);
  const batches = redid.reduce((sum, k) => sum + k.batches_redone, 0);
  const extra = kills.reduce((sum, k) => sum + Math.max(0, k.groups_extra - k.groups_in_flight), 0);
  const seconds = kills.map((k) => k.seconds).toSorted((a, b) => a - b);
  const median = seconds[Math.floor(seconds.length / 2)];
  return `| ${name} | ${kills.length} | ${equal} | ${redid.length} (${batches}) | ${extra} | ${median} |`;
}

function section(title: string, kills: Kill[], of: (kill: Kill) => string): string {
  const names = [...new Set(kills.map(of))].sort();
  return [
    `| ${title} | runs | equal | runs with batches to redo (batches) | groups made again beyond those in flight | seconds, median |`,
    "|---|---|---|---|---|---|",
    ...names.map((name) => line(name, kills.filter((k) => of(k) === name))),
  ].join("\n");
}

/** By what was killed, in which phase, and where the journal was kept. */
export function summary(kills: Kill[]): string {
  return [
    section("killed", kills, (k) => k.places.join(" and ")),
    section("first fault in", kills, (k) => k.phase),
    section("journal", kills, (k) => k.store),
  ].join("\n\n");
}

function table(kills: Kill[]): string {
  const rows = kills.map((k) => {
    const cells = [
      `\`${k.fault}\``,
      k.phase,
      k.store,
      k.digest_equal ? "equal" : "DIFFERENT",
      k.ledger_equal ? "equal" : "DIFFERENT",
      k.batches_redone,
      `${k.groups_extra} of ${k.groups_in_flight}`,
      k.seconds,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| fault | phase | journal | weights | ledger | batches redone | groups made again, of those in flight | seconds, all starts included |",
    "|---|---|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** The page in docs/ that shows one run of the whole list. */
export function killsPage(kills: Kill[], seed: number): string {
  const redid = kills.filter((k) => k.batches_redone > 0).length;
  const equal =
    kills.filter((k) => k.digest_equal && k.ledger_equal && k.broken.length === 0).length;
  const pairs = kills.filter((k) => k.faults > 1).length;
  return `# Killed ${kills.length} times

One command runs \`configs/quickstart_small.yaml\` again and again. Each time it kills (SIGKILL) or freezes (SIGSTOP) the engine, the agent, a trainer rank or the
sampler at a seeded point, ${pairs} times two of them in one run, starts the engine again if it was the engine, and compares the end with that of an
undisturbed run:

    deno run -A tests/crash/kills.ts --page docs/kill_tests.md

A point is an event, not a time: \`kill:engine@append:97\` dies at the engine's 97th durable append, \`frame\` is a message between engine and agent, \`op\`
the begin or end of a worker's operation. The points are drawn from the list of events that the undisturbed run wrote, with seed ${seed}, each phase in
turn. Of the pairs, half come so close together that the second fault hits the recovery from the first. The command continues where it stopped. The [long
suite](long_tests.md) \`crash\` runs twelve of them.

Equal means: the final weights (sha256 over all tensors), the ledger and the list of completed stages are those of the undisturbed run; every draw is in one
state; no completed stage started again; no version was recorded twice; no superseded engine wrote a row; no process outlived the run.
Of these ${kills.length} runs **${equal} ended equal**; ${redid} had batches to redo from the journal. The next engine adopts a living trainer, so an
engine that dies alone leaves nothing to redo.

${summary(kills)}

## Further faults

The suite compares each of these with the undisturbed run in the same way, with real processes:

| what | where |
|---|---|
| the engine killed at every 7th durable write | \`tests/crash/every_write_test.ts\` |
| a rank, a sampler, an agent frozen; an engine frozen for a while, and until another has taken its run over | \`tests/crash/frozen_test.ts\` |
| the cable between engine and agent pulled for a moment and for longer than the limit; one direction lost; a half-open connection | \`tests/crash/network/network_test.ts\` |
| a disk that is full under the checkpoints, and under the whole home | \`tests/crash/disk_full_test.ts\` |
| a checkpoint with a flipped bit, cut short, or with a file missing | \`tests/crash/damaged_checkpoint_test.ts\` |
| a batch of which half is gone: nothing is trained on it, and once the file is restored the run resumes | \`tests/crash/torn_artifact_test.ts\` |
| the engine's clock an hour ahead, an hour back, a day back; the workers' a day back | \`tests/crash/clock_test.ts\` |
| PostgreSQL restarted four times in a run, in order and by power loss | \`tests/crash/postgres_restart_test.ts\` |

\`deno task bench recovery\` measures how long each failure keeps a run from its work: [benchmarks](benchmarks.md).

## Every run

${table(kills)}
`;
}
