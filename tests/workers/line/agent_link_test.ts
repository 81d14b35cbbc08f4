import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { deepStrictEqual, match, ok, strictEqual, throws } from "node:assert/strict";
import { BadDataError, InfrastructureError, ManualClock } from "../../../engine/mod.ts";
import { AgentLink, type Hello } from "../../../workers/line/agent_link.ts";
import type { AgentMessage, EngineMessage, HeldTask, Phase } from "../../../workers/mod.ts";
import { LIMITS } from "../../../workers/line/limits.ts";
import { PROTOCOL_VERSION } from "../../../workers/line/protocol.ts";

class FakeSocket {
  readonly sent: EngineMessage[] = [];
  closed: number | null = null;
  bufferedAmount = 0;
  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }
  close(code: number): void {
    this.closed = code;
  }
}

const hello = (fields: Partial<Hello> = {}): Hello => ({
  type: "hello",
  protocol: PROTOCOL_VERSION,
  agent_id: "a",
  boot_id: "b",
  engine_boot: null,
  pid: 1,
  host: "h",
  packages: {},
  gpus: [],
  gpu_order: null,
  groups: [],
  tasks: [],
  received_seq: 0,
  ...fields,
});

function linkWith() {
  const phases: Phase[] = [];
  const messages: AgentMessage[] = [];
  const violations: [string, boolean][] = [];
  const clock = new ManualClock();
  const options = {
    agent_id: "a",
    run: "r",
    epoch: 4,
    engine_boot: "e",
    clock,
    heartbeat_ms: 1000,
    grace_ms: 2000,
  };
  const link = new AgentLink({
    ...options,
    preempt_grace_ms: 40_000,
    onFrame: (phase) => phases.push(phase),
  });
  link.onMessage = (message) => void (message.type === "hello" || messages.push(message));
  link.onViolation = (reason, fatal) => violations.push([reason, fatal]);
  return { link, phases, messages, violations, clock };
}

const text = (message: unknown) => new TextEncoder().encode(JSON.stringify(message));
const result = (seq: number, task = "t") => ({
  type: "result",
  seq,
  task,
  outputs: [{ json: `${seq}` }],
  blobs: [],
});
const task = (name: string) => ({
  type: "task" as const,
  task: name,
  group: "g",
  generation: 1,
  key: "k",
  attempt: 1,
  op: "train",
  args: { json: "{}" },
  args_hash: "h",
});
const held = (name: string, state: HeldTask["state"], fields: Partial<HeldTask> = {}): HeldTask => {
  const { type: _, args: __, ...rest } = task(name);
  return { ...rest, epoch: 4, cancelled: false, state, ...fields };
};

Deno.test("AgentLink sends what waits after the welcome, numbered from 1", () => {
  const { link } = linkWith();
  link.send(task("t1"));
  link.send(task("t2"));
  const socket = new FakeSocket();
  link.attach(socket, hello());
  deepStrictEqual(socket.sent.map((m) => [m.type, m.epoch, "seq" in m ? m.seq : null]), [
    ["welcome", 4, null],
    ["task", 4, 1],
    ["task", 4, 2],
  ]);
});

Deno.test("AgentLink tells an agent how long a reclaimed host has left", () => {
  const { link } = linkWith();
  const sockets = [new FakeSocket(), new FakeSocket()];
  for (const socket of sockets) link.attach(socket, hello());
  const welcomes = sockets.flatMap(({ sent }) => sent).filter((message) =>
    message.type === "welcome"
  );
  deepStrictEqual(welcomes.map((welcome) => welcome.preempt_grace_ms), [40_000, 40_000]);
});

Deno.test("AgentLink resends exactly the unacknowledged messages after a reconnect", () => {
  const { link } = linkWith();
  link.attach(new FakeSocket(), hello());
  for (const name of ["t1", "t2", "t3"]) link.send(task(name));
  const socket = new FakeSocket();
  link.attach(socket, hello({ engine_boot: "e", received_seq: 2 }));
  deepStrictEqual(socket.sent.slice(1).map((m) => "seq" in m && m.seq), [3]);
});

Deno.test("AgentLink delivers a repeated message once and acknowledges it again", () => {
  const { link, messages } = linkWith();
  const socket = new FakeSocket();
  link.attach(socket, hello());
  link.receive(socket, text(result(1)), false);
  link.receive(socket, text(result(1)), false);
  strictEqual(messages.length, 1);
  deepStrictEqual(socket.sent.slice(1).map((m) => m.type === "ack" && m.received_seq), [1, 1]);
});

Deno.test("AgentLink closes the socket on a gap, a broken frame or a second hello", () => {
  for (
    const frame of [result(2), { type: "nonsense" }, hello(), { type: "ack", received_seq: 9 }]
  ) {
    const { link, messages, violations } = linkWith();
    const socket = new FakeSocket();
    link.attach(socket, hello());
    link.receive(socket, text(frame), false);
    deepStrictEqual([messages.length, socket.closed, violations.length, link.attached], [
      0,
      1008,
      1,
      false,
    ]);
  }
});

Deno.test("AgentLink gives an agent up at its third violation", () => {
  const { link, violations } = linkWith();
  for (let i = 0; i < 3; i++) {
    const socket = new FakeSocket();
    link.attach(socket, hello());
    link.receive(socket, text("broken"), false);
  }
  deepStrictEqual(violations.map(([, fatal]) => fatal), [false, false, true]);
});

Deno.test("AgentLink ignores a socket that was replaced by a newer one of the same boot", () => {
  const { link, messages } = linkWith();
  const [old, fresh] = [new FakeSocket(), new FakeSocket()];
  link.attach(old, hello());
  link.attach(fresh, hello({ engine_boot: "e" }));
  link.receive(old, text(result(1)), false);
  link.detach(old);
  deepStrictEqual([messages.length, old.closed, link.attached], [0, 4000, true]);
});

Deno.test("AgentLink.admits() only the first boot until the link is closed", () => {
  const { link } = linkWith();
  strictEqual(link.admits(hello({ engine_boot: "old" })), false);
  strictEqual(link.admits(hello()), true);
  link.attach(new FakeSocket(), hello());
  strictEqual(link.admits(hello()), true); // Its welcome was lost.
  strictEqual(link.admits(hello({ engine_boot: "e" })), true);
  strictEqual(link.admits(hello({ boot_id: "other" })), false);
  link.close();
  strictEqual(link.admits(hello({ engine_boot: "e" })), false);
});

Deno.test("AgentLink answers a returning agent's tasks: go on, deliver, drop", () => {
  const { link } = linkWith();
  for (const name of ["t1", "t2", "t3"]) link.send(task(name));
  link.forget("t3");
  link.release("t3");
  const socket = new FakeSocket();
  link.attach(
    socket,
    hello({ tasks: [held("t1", "running"), held("t2", "finished"), held("t3", "running")] }),
  );
  const welcome = socket.sent[0]!;
  ok(welcome.type === "welcome");
  deepStrictEqual(welcome.tasks.map(({ verdict }) => verdict), ["continue", "deliver", "drop"]);
});

Deno.test("AgentLink counts frames by the operation's phase, except periodic ones", () => {
  const { link, phases } = linkWith();
  const socket = new FakeSocket();
  link.attach(socket, hello()); // welcome
  link.send(task("t"), "training");
  link.receive(socket, text({ type: "heartbeat", groups: [] }), false);
  link.receive(
    socket,
    text({ type: "progress", task: "t", rank: 0, phase: "p", done: 1, total: null }),
    false,
  );
  link.receive(
    socket,
    encode({ task: "t", blob: 0, offset: 0, total: 0, data: new Uint8Array() }),
    true,
  );
  link.receive(socket, text(result(1)), false);
  deepStrictEqual(phases, ["other", "training", "training", "training"]);
});

Deno.test("AgentLink.silentMs counts from the last frame of any kind", async () => {
  const { link, clock } = linkWith();
  const socket = new FakeSocket();
  link.attach(socket, hello());
  await clock.advance(4000);
  strictEqual(link.silentMs, 4000);
  link.receive(socket, text({ type: "heartbeat", groups: [] }), false);
  strictEqual(link.silentMs, 0);
});

Deno.test("AgentLink drops a socket that does not read and refuses too large messages", () => {
  const { link } = linkWith();
  const socket = new FakeSocket();
  link.attach(socket, hello());
  const json = "x".repeat(LIMITS.message_bytes_max);
  throws(() => link.send({ ...task("t"), args: { json } }), (error) => {
    ok(error instanceof BadDataError);
    match(
      error.message,
      /^Cannot send operation 'train' to agent 'a' because it has \d+ bytes: a message holds/,
    );
    return true;
  });
  socket.bufferedAmount = 65 * 1024 * 1024;
  link.send(task("t"));
  strictEqual(socket.closed, 1013);
});

Deno.test("AgentLink bounds what waits for an agent; messages about tasks always fit", () => {
  const { link } = linkWith();
  const json = "x".repeat(LIMITS.message_bytes_max / 4);
  for (const name of ["t1", "t2", "t3"]) link.send({ ...task(name), args: { json } });
  throws(() => link.send({ ...task("t4"), args: { json } }), (error) => {
    ok(
      error instanceof InfrastructureError &&
        /3 messages of \d+ bytes wait for its acknowledgement/.test(error.message),
    );
    return true;
  });
  for (let i = 0; i < 2000; i++) link.send({ type: "cancel", task: "t1" });
  const socket = new FakeSocket();
  link.attach(socket, hello());
  strictEqual(socket.sent.length, 1 + 3 + 2000);
  link.receive(socket, text({ type: "ack", received_seq: 2003 }), false);
  link.send({ ...task("t4"), args: { json } });
});

Deno.test("AgentLink delivers every message once and in order over a bad line", () => {
  const kinds = ["deliver", "repeat", "swap", "lose", "reconnect"] as const;
  fc.assert(fc.property(fc.array(fc.constantFrom(...kinds), { maxLength: 60 }), (steps) => {
    const { link, messages } = linkWith();
    let socket = new FakeSocket();
    link.attach(socket, hello());
    let next = 1;
    let last = 0;
    const receive = (seq: number) => {
      last = Math.max(last, seq);
      link.receive(socket, text(result(seq)), false);
    };
    const reconnect = () => {
      socket = new FakeSocket();
      link.attach(socket, hello({ engine_boot: "e" }));
      const welcome = socket.sent[0]!;
      next = welcome.type === "welcome" ? welcome.received_seq + 1 : 1;
    };
    for (const kind of steps) {
      if (kind === "reconnect") reconnect();
      else if (kind === "lose") next += 1; // What comes after it is a gap, and closes the socket.
      else if (kind === "swap") {
        receive(next + 1);
        receive(next);
        next += 2;
      } else {
        if (kind === "repeat" && next > 1) next -= 1;
        receive(next++);
      }
    }
    reconnect();
    while (next <= last) receive(next++);
    const seen = messages.map((message) => "seq" in message ? message.seq : 0);
    deepStrictEqual(seen, Array.from({ length: last }, (_, i) => i + 1));
  }));
});
