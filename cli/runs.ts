import {
  AGEING_MS,
  BadDataError,
  computedStatus,
  type ErrorJson,
  InvalidInputError,
  isQueued,
  queueOrder,
  type RunHead,
  shown,
} from "../engine/mod.ts";
import type { Evaluation, PairEvaluation } from "../flows/mod.ts";
import { findRun, graphName, type Home, newestRun, type RunView, runView } from "../runs/mod.ts";
import { didYouMean } from "../configs/mod.ts";
import { evaluationText } from "./evaluation_text.ts";
import { failureText } from "./failure_text.ts";
import { age, errorScreen, fixed, print, printJson, table } from "./output.ts";

const STATUSES = ["queued", "running", "interrupted", "done", "failed", "cancelled"];

/** `runs [TEXT]`: every run, newest first; with a text, only those whose id or name contains it. */
export async function listRuns(
  home: Home,
  options: { json?: boolean; status?: string; text?: string },
): Promise<void> {
  const { status: wanted, text = "" } = options;
  if (wanted !== undefined && !STATUSES.includes(wanted)) {
    const near = didYouMean(wanted, STATUSES);
    throw new InvalidInputError(`Cannot list runs of status '${wanted}'${near}: give one of ${STATUSES.join(", ")}`);
  }
  const heads = (await home.store.heads({ limit: 1000 })).toSorted((a, b) => b.created_ms - a.created_ms);
  const positions = queuePositions(heads);
  const rewards = await Promise.all(heads.map((head) => home.lastMetric(head, "reward/mean")));
  const runs = heads.map((head, i) => {
    const status = computedStatus(head);
    return {
      id: head.id,
      name: head.name,
      status,
      graph: graphName(head),
      parent: head.parent && { run: head.parent.run, round: head.parent.round },
      queue: head.queue,
      priority: head.priority,
      position: positions.get(head.id) ?? null,
      reward: rewards[i]!,
      resumable: status === "interrupted" || status === "failed",
      created_at: new Date(head.created_ms).toISOString(),
      error: head.error === null ? null : (JSON.parse(head.error) as { message: string }).message,
    };
  }).filter(({ id, name, status }) => (!wanted || status === wanted) && (id.includes(text) || name.includes(text)));
  const misnamed = await home.store.misnamed();
  if (misnamed.length > 0) errorScreen().write(`${misnamedText(misnamed)}\n`);
  if (options.json) return printJson(runs);
  if (runs.length === 0 && heads.length > 0) return print(`none of ${heads.length} runs matches`);
  if (runs.length === 0) {
    return print("no runs yet: start one with 'run CONFIG', or omit the command to run the quickstart");
  }
  const rows = runs.map((run) => [
    run.id,
    run.name,
    run.position === null ? run.status : `queued ${run.queue} ${run.position}`,
    run.parent === null ? run.graph : `${run.graph} from ${run.parent.run}/${run.parent.round}`,
    run.reward === null ? "-" : fixed(run.reward, 3),
    age(Date.now() - Date.parse(run.created_at)),
    (run.error ?? "").split("\n")[0]!.slice(0, 60),
  ]);
  print(table(["run", "name", "status", "graph", "reward", "age", "last error"], rows));
}

/** Skipped ids that a line names. */
const NAMED_MAX = 3;

function misnamedText(ids: readonly string[]): string {
  const named = ids.slice(0, NAMED_MAX).map((id) => `'${shown(id)}'`).join(", ");
  const rest = ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : "";
  return `skipped ${ids.length} of the store's runs because their ids are not directory names: ${named}${rest}. ` +
    "Fix: start the ones you need again with a different --id";
}

/** The position of each waiting run in its queue, from 1. */
function queuePositions(heads: RunHead[]): Map<string, number> {
  const waiting = queueOrder(heads.filter(isQueued), AGEING_MS, Date.now());
  const queues = Map.groupBy(waiting, ({ queue }) => queue);
  return new Map([...queues.values()].flatMap((runs) => runs.map(({ id }, i): [string, number] => [id, i + 1])));
}

/** `show RUN`. */
export async function showRun(home: Home, id: string | undefined, options: { json?: boolean }): Promise<void> {
  const head = await findRun(home, id ?? (await newestRun(home)));
  const view = await runView(home.store, head, await home.liveFacts(head.id));
  if (options.json) return printJson(view);
  print(runText(view, home));
}

function versionText({ version, digest }: NonNullable<RunView["policy"]>): string {
  return `${version.slice(0, 12)} digest ${digest ?? "-"}`;
}

function said(value: unknown): string {
  return value === undefined ? "-" : JSON.stringify(value);
}

/** What `show` prints: a line for each fact about a run. */
export function runText(view: RunView, home: Home): string {
  const { ledger, generated } = view;
  const reasons = (counts: Record<string, number>) =>
    Object.entries(counts).map(([reason, n]) => `${reason} ${n}`).join(", ") || "0";
  const lines: [string, string][] = [
    ["run", `${view.id}${view.name === view.id ? "" : ` (${view.name})`}`],
    ["status", view.status + (view.engine_pid === null ? "" : `, engine pid ${view.engine_pid}`)],
    ...(view.queue === null ? [] : [["queue", `${view.queue}, priority ${view.priority}`] as [string, string]]),
    ["graph", `${view.graph} ${view.graph_hash.slice(0, 12)}, epoch ${view.epoch}`],
    ...(view.parent === null
      ? []
      : [["parent", `${view.parent.run}, up to ${view.parent.loop}/${view.parent.round}`] as [string, string]]),
    ["round", view.loop === null ? "0" : `${view.loop} ${view.round}`],
    ["policy", view.policy === null ? "-" : versionText(view.policy)],
    ...(view.critic ? [["value model", versionText(view.critic)] as [string, string]] : []),
    [
      "ledger",
      `read ${ledger.read} = trained ${ledger.trained} + filtered ${
        reasons(ledger.filtered)
      } + stale ${ledger.stale} + ` +
      `failed ${reasons(ledger.failed)} + pending ${ledger.pending}`,
    ],
    ...view.rows.filter((r) => r.dropped + r.truncated > 0).map((r): [string, string] => [
      "rows",
      `${r.split}: ${r.rows}, ${r.dropped > 0 ? `${r.dropped} dropped` : `${r.truncated} truncated`} as too long ` +
      `(the longest prompt has ${r.longest_prompt_tokens} tokens)`,
    ]),
    ...(view.untrained === null ? [] : [["warning", view.untrained] as [string, string]]),
    ["generated", `${generated.groups} groups, ${generated.samples} samples, ${generated.tokens} tokens`],
    ...view.workers.map((
      w,
    ): [string, string] => ["worker", `${w.group} rank ${w.rank ?? "-"} pid ${w.pid ?? "-"} ${w.state}`]),
    ...view.recoveries.map((r): [string, string] => [
      "recovery",
      `${r.cause}: ${r.action}, ${r.batches_redone} batches${r.group ? ` of ${r.group}` : ""} redone in ${
        r.seconds.toFixed(1)
      } s`,
    ]),
    ...view.replans.map((r): [string, string] => [
      "replan",
      `${r.round === null ? "at a resume" : `in round ${r.round}`}, ${r.cause}: ${r.field} ${r.from} -> ${r.to}`,
    ]),
    ...view.settings.map(({ path, from, to }): [string, string] => ["setting", `${path} ${said(from)} -> ${said(to)}`]),
    ...view.evaluations.map((
      e,
    ): [string, string] => ["evaluation", `${e.name}: ${evaluationText(e as Evaluation | PairEvaluation)}`]),
    ...Object.entries(view.metrics).map(([name, n]): [string, string] => ["metric", `${name} ${n}`]),
    ...(view.error === null
      ? []
      : [["error", failureText(view.error as ErrorJson, { run: view.id, home })] as [string, string]]),
  ];
  return lines.map(([name, text]) => `${name.padEnd(10)} ${text}`).join("\n");
}

/** Reads an option as a whole number of at least `least`. */
export function wholeNumber(text: string, { name, least }: { name: string; least: number }): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new BadDataError(`Cannot use '${text}' for ${name}: give a whole number of at least ${least}`, { name });
}
