import { hasValueModel, refillOf, titleOf, unpairedOf } from "../../algs/mod.ts";
import { hubDataset, hubDatasetText, hubName, hubNameText, isHubDataset } from "../../data/mod.ts";
import {
  type Config,
  evaluationSets,
  loadConfig,
  type LoadedConfig,
  namedFiles,
} from "../../configs/mod.ts";
import { buildFlow, flowDefinition, type RowTables } from "../../flows/mod.ts";
import {
  questionsOf,
  resolvedStart,
  rowTables,
  type StartNote,
  unbalancedLabels,
} from "../../runs/mod.ts";
import type { GlobalOptions } from "../global_options.ts";
import type { Graph } from "../../engine/mod.ts";
import { type TrainerConfig, valueTrainer } from "../../workers/mod.ts";
import { print, printJson, table } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { json, text } from "../options.ts";

/** `plan CONFIG`: the graph, its counts and where it runs. Starts nothing and spends nothing. */
export const planVerb = defineVerb({
  name: "plan",
  about: "draw the graph and count its cost without starting anything",
  arguments: { "<config>": ARGUMENTS.config, "[overrides...]": ARGUMENTS.overrides },
  options: { json, format: text("<format>", "text or mermaid", { default: "text" }) },
  async action({ args: { config, overrides }, flags, globals }) {
    const loaded = await loadConfig(config, { overrides, cwd: Deno.cwd() });
    await printPlan(loaded, { ...flags, globals });
  },
});

async function printPlan(
  loaded: LoadedConfig,
  options: { json?: boolean; format?: string; globals: GlobalOptions },
): Promise<void> {
  const graph = buildFlow(loaded.config);
  const arithmetic = batchArithmetic(loaded.config);
  const placement = placements(loaded.config);
  const models = modelLines(loaded.config);
  const data = dataLines(loaded.config);
  // Nobody asks the hub for a plan.
  const rows = data.length > 0
    ? {}
    : await rowTables(loaded.config, { home: options.globals.home });
  const questions = [
    ...questionsOf(loaded.config, rows),
    ...await unbalancedLabels(loaded.config, rows),
  ];
  const start = await plannedStart(loaded, { rows, globals: options.globals });
  if (options.json) {
    const { name, hash, lines } = graph;
    return printJson({
      graph: name,
      graph_hash: hash,
      lines,
      stages: graph.count(),
      arithmetic,
      placement,
      models,
      data,
      start: start ?? undefined,
      questions,
    });
  }
  if (options.format === "mermaid") return print(graph.draw("mermaid"));
  print([
    graph.draw("text"),
    "",
    table(["stage", "runs on", "times"], countRows(graph)),
    "",
    ...(start ? [`start      after ${start.loop} ${start.round} of run ${start.run}`] : []),
    ...arithmetic.map((line) => `batch      ${line}`),
    ...placement.map((line) => `placement  ${line}`),
    ...models.map((line) => `model      ${line}`),
    ...data.map((line) => `data       ${line}`),
    ...questions.map((line) => `question   ${line}`),
  ].join("\n"));
}

/** Where the run would start; null: from a model. A home is opened only for that. */
async function plannedStart(
  { config, origins }: LoadedConfig,
  { rows, globals }: { rows: RowTables; globals: GlobalOptions },
): Promise<StartNote | null> {
  if (!("start_from" in config) || config.start_from === undefined) return null;
  const definition = flowDefinition(config.flow);
  const { start } = await globals.withHome((home) =>
    resolvedStart(home, definition, { config, rows, origins })
  );
  return start!.note;
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
      return onlineLines(config, config);
    case "quickstart":
      return [
        warmupLine(config.warmup),
        ...onlineLines(config.online, config),
      ];
    case "supervised":
      return [
        `${config.rows_per_round} rows x ${config.rounds} rounds = ${
          config.rows_per_round * config.rounds
        } rows`,
      ];
    case "preference":
      return [
        ...(config.warmup ? [warmupLine(config.warmup)] : []),
        preferenceLine(config),
      ];
    case "evaluate":
      return [evaluationLine(config)];
    case "prepare":
      return [];
  }
}

function preferenceLine(config: Extract<Config, { flow: "preference" }>): string {
  const { pairs_per_round: count, rounds, algorithm } = config;
  const what = unpairedOf(algorithm) === null ? "pairs" : "rows";
  return `${count} ${what} x ${rounds} rounds = ${count * rounds} ${what}`;
}

function evaluationLine(config: Extract<Config, { flow: "evaluate" }>): string {
  const { problems, samples_per_prompt } = config.evaluate;
  const sets = evaluationSets(config).length;
  return `${problems ?? "all"} problems${
    sets === 1 ? "" : ` of each of ${sets} files`
  } x ${samples_per_prompt} samples`;
}

function warmupLine(
  { rounds, rows_per_round: rows }: { rounds: number; rows_per_round: number },
): string {
  return `warm-up: ${rows} rows x ${rounds} rounds = ${rows * rounds} rows`;
}

type Rounds = { rounds: number; prompts_per_round: number; samples_per_prompt: number };

function onlineLines(
  { rounds, prompts_per_round: prompts, samples_per_prompt: samples }: Rounds,
  { algorithm, trainer: { ranks } }: Extract<Config, { flow: "online" | "quickstart" }>,
): string[] {
  const each = prompts * samples;
  const refill = refillOf(algorithm);
  return [
    `${prompts} prompts x ${samples} samples = ${each} trajectories a round over ${ranks} ` +
    `${ranks === 1 ? "rank" : "ranks"}; x ${rounds} rounds = ${each * rounds}`,
    ...(refill
      ? [
        `${titleOf(algorithm)} draws until a round is full: up to ${refill.batches_max} batches, ` +
        `so at most ${each * refill.batches_max * rounds} are sampled`,
      ]
      : []),
  ];
}

/** Models of the hub, and what the model block says about opening models. */
function modelLines(config: Config): string[] {
  const names = namedFiles(config).flatMap(({ path, kind, text }) => {
    const name = kind === "model" ? hubName(text) : null;
    return name === null ? [] : [`${path.join(".")}: ${hubNameText(name)} of the hub`];
  });
  const {
    attn_implementation = null,
    trust_remote_code = false,
    open_with_missing = false,
    open_with_unexpected = false,
  } = "model" in config && "path" in config.model ? config.model : {};
  return [
    ...names,
    ...(attn_implementation ? [`attention by ${attn_implementation}`] : []),
    ...(trust_remote_code
      ? ["trust_remote_code is on: Python code of the model runs in the workers with your rights"]
      : []),
    ...(open_with_missing
      ? ["open_with_missing is on: tensors that the model lacks start as random numbers"]
      : []),
    ...(open_with_unexpected
      ? ["open_with_unexpected is on: tensors that the model has no place for are left out"]
      : []),
  ];
}

/** Data sets of the hub. */
function dataLines(config: Config): string[] {
  return namedFiles(config).flatMap(({ path, kind, text }) =>
    kind === "rows" && isHubDataset(text)
      ? [`${path.join(".")}: ${hubDatasetText(hubDataset(text))} of the hub`]
      : []
  );
}

function placements(config: Config): string[] {
  if (config.flow === "prepare") return [];
  const { trainer } = config;
  const sampler = "sampler" in config ? config.sampler : null;
  const line = (
    name: string,
    { engine, zero, ranks, device, dtype }: Omit<TrainerConfig, "optimizer">,
  ) =>
    `${name}: ${engine}${
      engine === "deepspeed" ? ` ZeRO ${zero}` : ""
    }, ${ranks} x ${device}, ${dtype}`;
  const values = "value_model" in config && hasValueModel(config.algorithm)
    ? config.value_model
    : null;
  return [
    line("trainer", trainer),
    ...(values ? [line("value model", valueTrainer(trainer, values))] : []),
    ...(sampler
      ? [`sampler: ${sampler.engine}, ${sampler.replicas} x ${sampler.device}, ${sampler.dtype}`]
      : []),
  ];
}
