import type { ErrorJson } from "../../engine/mod.ts";
import type { Evaluation, PairEvaluation } from "../../flows/mod.ts";
import type { Home, RunView } from "../../runs/mod.ts";
import { evaluationText } from "./evaluation_text.ts";
import { failureText } from "./failure_text.ts";
import { fixed } from "./output.ts";

/** A fact about a run: its name and its text. */
type Fact = [name: string, text: string];

/** What `show` prints: a line for each fact about a run. */
export function runText(view: RunView, home: Home): string {
  const { error, untrained, evaluations, metrics } = view;
  const facts: Fact[] = [
    ...identity(view),
    ...progress(view),
    ["ledger", ledgerText(view.ledger)],
    ...unusedRows(view),
    ...mixedSources(view),
    ...(untrained === null ? [] : [["warning", untrained] as Fact]),
    ["generated", generatedText(view.generated)],
    ...workers(view),
    ...changes(view),
    ...evaluations.map((one): Fact => [
      "evaluation",
      `${one.name}: ${evaluationText(one as Evaluation | PairEvaluation)}`,
    ]),
    ...Object.entries(metrics).map(([name, n]): Fact => ["metric", `${name} ${n}`]),
    ...(error === null
      ? []
      : [["error", failureText(error as ErrorJson, { run: view.id, home })] as Fact]),
  ];
  return facts.map(([name, text]) => `${name.padEnd(10)} ${text}`).join("\n");
}

function identity({ id, name, status, engine_pid, queue, priority, ...view }: RunView): Fact[] {
  const { graph, graph_hash, epoch, parent, start } = view;
  const facts: Fact[] = [
    ["run", name === id ? id : `${id} (${name})`],
    ["status", engine_pid === null ? status : `${status}, engine pid ${engine_pid}`],
  ];
  if (queue !== null) facts.push(["queue", `${queue}, priority ${priority}`]);
  facts.push(["graph", `${graph} ${graph_hash.slice(0, 12)}, epoch ${epoch}`]);
  if (parent !== null) {
    facts.push(["parent", `${parent.run}, up to ${parent.loop}/${parent.round}`]);
  }
  if (start !== undefined) {
    facts.push(["started", `from ${start.run}, after ${start.loop}/${start.round}`]);
  }
  return facts;
}

function progress({ loop, round, policy, critic }: RunView): Fact[] {
  return [
    ["round", loop === null ? "0" : `${loop} ${round}`],
    ["policy", policy === null ? "-" : versionText(policy)],
    ...(critic ? [["value model", versionText(critic)] as Fact] : []),
  ];
}

function versionText({ version, digest }: NonNullable<RunView["policy"]>): string {
  return `${version.slice(0, 12)} digest ${digest ?? "-"}`;
}

function ledgerText(
  { read, trained, filtered, stale, failed, pending }: RunView["ledger"],
): string {
  const reasons = (counts: Record<string, number>) =>
    Object.entries(counts).map(([reason, n]) => `${reason} ${n}`).join(", ") || "0";
  return `read ${read} = trained ${trained} + filtered ${reasons(filtered)} + stale ${stale} + ` +
    `failed ${reasons(failed)} + pending ${pending}`;
}

/** Splits with rows that were too long. */
function unusedRows({ rows }: RunView): Fact[] {
  return rows.filter(({ dropped, truncated }) => dropped + truncated > 0).map((split) => {
    const { dropped, truncated, longest_prompt_tokens } = split;
    const what = dropped > 0 ? `${dropped} dropped` : `${truncated} truncated`;
    return [
      "rows",
      `${split.split}: ${split.rows}, ${what} as too long ` +
      `(the longest prompt has ${longest_prompt_tokens} tokens)`,
    ];
  });
}

/** Sources that are mixed: how often their rows were drawn. */
function mixedSources({ mixture }: RunView): Fact[] {
  return mixture.map(({ name, rows, drawn, repeated, share, recent }) => [
    "source",
    `${name}: ${drawn} draws of ${rows} rows, ` +
    (drawn < rows ? `${rows - drawn} left` : `exhausted, ${repeated} repeated`) +
    `, share ${share.toFixed(3)}` +
    (recent === undefined || recent === null ? "" : `, recent reward ${fixed(recent, 3)}`),
  ]);
}

function generatedText({ groups, samples, tokens }: RunView["generated"]): string {
  return `${groups} groups, ${samples} samples, ${tokens} tokens`;
}

function workers({ workers, recoveries }: RunView): Fact[] {
  return [
    ...workers.map(({ group, rank, pid, state }): Fact => [
      "worker",
      `${group} rank ${rank ?? "-"} pid ${pid ?? "-"} ${state}`,
    ]),
    ...recoveries.map(({ cause, action, batches_redone, group, seconds }): Fact => [
      "recovery",
      `${cause}: ${action}, ${batches_redone} batches${group ? ` of ${group}` : ""} redone in ${
        seconds.toFixed(1)
      } s`,
    ]),
  ];
}

/** What is no longer as it was when the run started. */
function changes({ replans, settings }: RunView): Fact[] {
  const shown = (value: unknown) => value === undefined ? "-" : JSON.stringify(value);
  return [
    ...replans.map(({ round, cause, field, from, to }): Fact => {
      const when = round === null ? "at a resume" : `in round ${round}`;
      return ["replan", `${when}, ${cause}: ${field} ${from} -> ${to}`];
    }),
    ...settings.map(({ path, from, to }): Fact => [
      "setting",
      `${path} ${shown(from)} -> ${shown(to)}`,
    ]),
  ];
}
