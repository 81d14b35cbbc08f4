import type { Clock, EngineError } from "../../engine/mod.ts";
import type { AgentLink, ReliableMessage } from "../line/agent_link.ts";
import { leavesGroupWhole } from "../failures/failures.ts";
import type { Declared, GroupLine } from "./group_line.ts";
import type { Inherited } from "./inheritance.ts";
import type { Phase } from "../roles/role.ts";
import type { AgentMessage, FailureReport, GroupState, RankState } from "../line/protocol.ts";

/** The ranks of a group that are on one host. */
export type Part = {
  host: string;
  link: AgentLink;
  interface: string | null;
  ranks: number;
};

type OfGroup = Extract<AgentMessage, { type: "group" }>;
type Result = Extract<AgentMessage, { type: "result" }>;
type Answer = Result | Extract<AgentMessage, { type: "error" }>;
type StartGroup = Extract<ReliableMessage, { type: "start_group" }>;
type Rendezvous = { address: string; port: number };

type SpanOptions = {
  group: string;
  clock: Clock;
  /** Environment of the ranks on a host, besides the group's. */
  env?: (host: string) => Record<string, string>;
  /** Asked before ranks are ended. */
  owns: () => Promise<boolean>;
  onMessage: (message: AgentMessage) => void;
  onRanks: (state: GroupState) => void;
  /** Only some of the hosts received a message, so the ranks cannot continue together. */
  onBroken: (error: EngineError) => void;
  /** The earlier engine's work that continues here. */
  inherited: Inherited | null;
};

/**
 * After the first failure on one host, the time for reports from the others. An agent itself waits
 * 1 s.
 */
export const LAST_WORDS_MS = 3000;

/**
 * One group's ranks on one host or several. The group sees them as if one agent ran them: messages
 * go to every host, and the answers are joined. If one part ends, the others end too.
 */
export class Span implements GroupLine {
  readonly #parts: Placed[];
  readonly #options: SpanOptions;
  #generation = 0;
  /** Waits for rank 0's host to say where the ranks meet. */
  #starting: StartGroup | null = null;
  /** Each host's last report about the generation. */
  #reports = new Map<string, OfGroup>();
  #ranks = new Map<string, RankState[]>();
  /** By task and host. */
  #answers = new Map<string, Map<string, Answer>>();
  #window: AbortController | null = null;
  /** The generation was given up. Its messages are ignored. */
  #over = false;

  /** @param parts In the order of their ranks. */
  constructor(parts: Part[], options: SpanOptions) {
    this.#parts = placed(parts);
    this.#options = options;
    if (!options.inherited) return;
    const { group, tasks } = options.inherited;
    this.#generation = group.generation;
    for (const { task } of tasks) this.#answers.set(task, new Map());
    for (const { host, first, ranks } of this.#parts) {
      this.#ranks.set(host, group.ranks.slice(first, first + ranks));
    }
  }

  get interface(): string | null {
    const names = this.#parts.map((part) => part.interface ?? "");
    return names.every((name) => name === "") ? null : names.join(",");
  }

  get parts(): readonly number[] | null {
    return this.#isWhole ? null : this.#parts.map(({ ranks }) => ranks);
  }

  /** Blobs of all hosts, rank 0's first. */
  get blobs(): GroupLine["blobs"] {
    const take = (task: string, declared: Declared) => {
      if (this.#isWhole) return this.#parts[0]!.link.blobs.take(task, declared);
      const answers = this.#answers.get(task);
      const ofHost = (host: string) => (answers?.get(host) as Result).blobs;
      return this.#parts.flatMap(({ host, link }) => link.blobs.take(task, ofHost(host)));
    };
    return { take };
  }

  get #isWhole(): boolean {
    return this.#parts.length === 1;
  }

  /** Whether the group has ranks on this host. */
  isOn(host: string): boolean {
    return this.#parts.some((part) => part.host === host);
  }

  /**
   * @throws {EngineError} If a message is too large, or a host does not acknowledge what it got.
   */
  send(message: ReliableMessage, phase?: Phase): void {
    if (message.type === "start_group") return this.#start(message);
    if (message.type === "task") this.#answers.set(message.task, new Map());
    for (const [i, { link }] of this.#parts.entries()) {
      try {
        link.send(message, phase);
      } catch (error) {
        if (i > 0) queueMicrotask(() => this.#options.onBroken(error as EngineError));
        throw error;
      }
    }
  }

  #start(message: StartGroup): void {
    this.#generation = message.generation;
    this.#over = false;
    this.#closeWindow();
    this.#reports.clear();
    this.#ranks.clear();
    this.#answers.clear();
    this.#starting = this.#isWhole ? null : message;
    const [part] = this.#parts;
    if (this.#isWhole) part!.link.send({ ...message, env: this.#env(message, part!) });
    else part!.link.send(this.#part(message, part!, { rendezvous: null }));
  }

  /** Starts the ranks of the other hosts, which rank 0 waits for. */
  #meet({ generation, address, port }: Extract<AgentMessage, { type: "rendezvous" }>): void {
    const message = this.#starting;
    if (message === null || generation !== this.#generation || this.#over) return;
    this.#starting = null;
    try {
      for (const part of this.#parts.slice(1)) {
        part.link.send(this.#part(message, part, { rendezvous: { address, port } }));
      }
    } catch (error) {
      this.#options.onBroken(error as EngineError);
    }
  }

  #part(
    message: StartGroup,
    part: Placed,
    { rendezvous }: { rendezvous: Rendezvous | null },
  ): StartGroup {
    const { first, ranks } = part;
    const env = this.#env(message, part);
    return { ...message, env, interface: part.interface, part: { first, ranks, rendezvous } };
  }

  #env({ env }: StartGroup, { host }: Placed): Record<string, string> {
    return { ...env, ...this.#options.env?.(host) };
  }

  release(task: string): void {
    for (const { link } of this.#parts) link.release(task);
  }

  forget(task: string): void {
    this.#answers.delete(task);
    for (const { link } of this.#parts) link.forget(task);
  }

  /** Ends the generation on the other hosts because this one was lost. */
  lost(host: string): void {
    this.#over = true;
    this.#closeWindow();
    this.#endRanks((part) => part.host !== host);
  }

  /** What a host's agent reports about the group. */
  receive(host: string, message: AgentMessage): void {
    if (this.#isWhole) return this.#options.onMessage(message);
    switch (message.type) {
      case "rendezvous":
        return this.#meet(message);
      case "group":
        return this.#groupChanged(host, message);
      case "result":
      case "error":
        return this.#answered(host, message);
      default:
        return this.#options.onMessage(message);
    }
  }

  /** The ranks of a host according to its last heartbeat. */
  refresh(host: string, state: GroupState): void {
    if (this.#isWhole) return this.#options.onRanks(state);
    if (state.generation !== this.#generation) return;
    this.#ranks.set(host, state.ranks);
    this.#options.onRanks({ ...state, ranks: this.#allRanks() });
  }

  #allRanks(): RankState[] {
    return this.#parts.flatMap(({ host }) => this.#ranks.get(host) ?? []);
  }

  #groupChanged(host: string, message: OfGroup): void {
    if (message.generation !== this.#generation || this.#over) return;
    this.#reports.set(host, message);
    this.#ranks.set(host, message.ranks);
    const reports = this.#parts.map((part) => this.#reports.get(part.host));
    if (reports.every((one) => one?.state === "ready")) {
      this.#options.onMessage({ ...reports[0]!, ranks: this.#allRanks() });
    } else if (reports.every((one) => one && hasEnded(one))) {
      this.#end();
    } else if (hasEnded(message)) {
      this.#openWindow();
    }
  }

  #answered(host: string, message: Answer): void {
    const answers = this.#answers.get(message.task);
    if (!answers || this.#over) {
      return this.#parts.find((part) => part.host === host)?.link.release(message.task);
    }
    answers.set(host, message);
    if (answers.size < this.#parts.length) {
      if (message.type === "error") this.#openWindow();
      return;
    }
    const inOrder = this.#parts.map((part) => answers.get(part.host)!);
    const size = this.#parts.reduce((sum, { ranks }) => sum + ranks, 0);
    const results = inOrder.filter((answer) => answer.type === "result");
    const failures = inOrder.flatMap((answer) => answer.type === "error" ? answer.failures : []);
    if (results.length === inOrder.length) {
      this.#options.onMessage(joinedResult(results));
    } else if (leavesGroupWhole(failures, size)) {
      this.#closeWindow();
      this.#options.onMessage({ ...message, type: "error", failures });
    } else {
      this.#end();
    }
  }

  #openWindow(): void {
    if (this.#window) return;
    const window = this.#window = new AbortController();
    this.#options.clock.sleep(LAST_WORDS_MS, window.signal).then(() => this.#end(), () => {});
  }

  #closeWindow(): void {
    this.#window?.abort(new Error("the last messages have arrived"));
    this.#window = null;
  }

  /**
   * Reports the end of the generation to the group, with every host's failures, and ends the
   * remaining ranks.
   */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#closeWindow();
    this.#endRanks(({ host }) => !hasEnded(this.#reports.get(host)));
    const failures = new Map<number, FailureReport>();
    const answers = [...this.#answers.values()].flatMap((one) => [...one.values()]);
    for (const report of [...this.#reports.values(), ...answers]) {
      if (!("failures" in report)) continue;
      for (const failure of report.failures) failures.set(failure.rank, failure);
    }
    const { group } = this.#options;
    this.#options.onMessage({
      type: "group",
      seq: 1, // It came over no line.
      group,
      generation: this.#generation,
      state: "failed",
      ranks: this.#allRanks(),
      info: {},
      failures: [...failures.values()].toSorted((a, b) => a.rank - b.rank),
    });
  }

  #endRanks(which: (part: Placed) => boolean): void {
    if (this.#isWhole) return;
    const { group, owns } = this.#options;
    const message = {
      type: "stop_group" as const,
      group,
      generation: this.#generation,
      grace_ms: 0,
    };
    owns().then((owned) => {
      for (const part of owned ? this.#parts.filter(which) : []) part.link.send(message);
    });
  }
}

function hasEnded(report: OfGroup | undefined): boolean {
  return report?.state === "failed" || report?.state === "stopped";
}

/** A part, with the number of its first rank. */
type Placed = Part & { first: number };

function placed(parts: readonly Part[]): Placed[] {
  let ranks = 0;
  return parts.map((part) => {
    const first = ranks;
    ranks += part.ranks;
    return { ...part, first };
  });
}

/** Joins the results into one, as if one agent had sent it. */
function joinedResult(results: Result[]): Result {
  let before = 0;
  const outputs: Result["outputs"] = [];
  for (const { outputs: rankOutputs, blobs } of results) {
    outputs.push(
      ...rankOutputs.map((output) => "blob" in output ? { blob: output.blob + before } : output),
    );
    before += blobs.length;
  }
  return { ...results[0]!, outputs, blobs: results.flatMap(({ blobs }) => blobs) };
}

/**
 * Joins what an earlier engine left of a group on its hosts, in the order of their ranks. Null if
 * the parts do not match, so that the group cannot continue.
 */
export function joinInherited(inherited: readonly Inherited[]): Inherited | null {
  const [first] = inherited;
  if (first === undefined || inherited.length === 1) return first ?? null;
  const { generation, spec_hash } = first.group;
  const same = inherited.every(({ group }) =>
    group.state === "ready" && group.generation === generation && group.spec_hash === spec_hash
  );
  if (!same) return null;
  const held = Map.groupBy(inherited.flatMap(({ tasks }) => tasks), ({ task }) => task);
  const tasks: Inherited["tasks"] = [];
  for (const parts of held.values()) {
    const isRunning = parts.some(({ state }) => state === "running");
    if (parts.length === inherited.length) {
      const cancelled = parts.some((part) => part.cancelled);
      tasks.push({ ...parts[0]!, cancelled, state: isRunning ? "running" : "finished" });
    } else if (isRunning) {
      return null; // The engine died before every host was asked.
    }
  }
  return { group: { ...first.group, ranks: inherited.flatMap(({ group }) => group.ranks) }, tasks };
}
