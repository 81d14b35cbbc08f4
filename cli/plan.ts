import type { Config, LoadedConfig } from "../configs/mod.ts";
import { buildFlow } from "../flows/mod.ts";
import type { Graph } from "../engine/mod.ts";
import { print, printJson, table } from "./output.ts";

/** `plan CONFIG`: the graph, what it counts to and where it runs. Starts nothing and spends nothing. */
export function printPlan(loaded: LoadedConfig, options: { json?: boolean; format?: string }): void {
  const graph = buildFlow(loaded.config);
  const arithmetic = batchArithmetic(loaded.config);
  const placement = placements(loaded.config);
  if (options.json) {
    const { name, hash, lines } = graph;
    return printJson({ graph: name, graph_hash: hash, lines, stages: graph.count(), arithmetic, placement });
  }
  if (options.format === "mermaid") return print(graph.draw("mermaid"));
  print([
    graph.draw("text"),
    "",
    table(["stage", "runs on", "times"], countRows(graph)),
    "",
    ...arithmetic.map((line) => `batch      ${line}`),
    ...placement.map((line) => `placement  ${line}`),
  ].join("\n"));
}

function countRows(graph: Graph): string[][] {
  return graph.count().map(({ stage, runs_on, times, per_item }) => [
    stage,
    runs_on,
    per_item ? `${times} x items` : String(times),
  ]);
}

/** What a round costs, in the field's words. */
export function batchArithmetic(config: Config): string[] {
  switch (config.flow) {
    case "online":
      return [onlineLine(config, config.rounds, config.trainer.ranks)];
    case "quickstart":
      return [
        `warm-up: ${config.warmup.rows_per_round} rows x ${config.warmup.rounds} rounds = ` +
        `${config.warmup.rows_per_round * config.warmup.rounds} rows`,
        onlineLine(config.online, config.online.rounds, config.trainer.ranks),
      ];
    case "supervised":
      return [
        `${config.rows_per_round} rows x ${config.rounds} rounds = ${config.rows_per_round * config.rounds} rows`,
      ];
    case "evaluate":
      return [`${config.evaluate.problems ?? "all"} problems x ${config.evaluate.samples_per_prompt} samples`];
  }
}

function onlineLine(
  { prompts_per_round: prompts, samples_per_prompt: samples }: {
    prompts_per_round: number;
    samples_per_prompt: number;
  },
  rounds: number,
  ranks: number,
): string {
  const each = prompts * samples;
  return `${prompts} prompts x ${samples} samples = ${each} trajectories a round over ${ranks} ` +
    `${ranks === 1 ? "rank" : "ranks"}; x ${rounds} rounds = ${each * rounds}`;
}

function placements(config: Config): string[] {
  const { trainer, sampler } = config;
  const zero = trainer.engine === "deepspeed" ? ` ZeRO ${trainer.zero}` : "";
  return [
    `trainer: ${trainer.engine}${zero}, ${trainer.ranks} x ${trainer.device}, ${trainer.dtype}`,
    `sampler: ${sampler.engine}, ${sampler.replicas} x ${sampler.device}, ${sampler.dtype}`,
  ];
}
