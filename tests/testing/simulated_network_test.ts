import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { SimulatedNetwork, SimulatedWorld } from "../../testing/mod.ts";
import type { DoorSocket } from "../../workers/mod.ts";

const FILE = { url: "simulated://1", token: "t", engine_boot: "e", epoch: 1 };

/** An engine and an agent, connected, and what each end hears. */
async function connected({ seed = 1, latency_ms = [1, 5] as [number, number] } = {}) {
  const world = new SimulatedWorld(seed);
  const network = new SimulatedNetwork(world, latency_ms);
  const [engine, agent] = [world.start("engine"), world.start("agent")];
  const at = { door: [] as unknown[], line: [] as unknown[] };
  let door: DoorSocket | undefined;
  const opened = network.door(engine).open((socket) => {
    door = socket;
    socket.listen({
      frame: (data, binary) => at.door.push(binary ? [...data] : new TextDecoder().decode(data)),
      broken: (reason) => at.door.push({ broken: reason }),
      closed: () => at.door.push("closed"),
    });
  });
  const line = network.line(agent).connect({ ...FILE, url: await opened }, {
    open: () => at.line.push("open"),
    frame: (text) => at.line.push(text),
    closed: () => at.line.push("closed"),
  });
  await world.run();
  return { world, network, engine, agent, line, door: door!, at };
}

Deno.test("SimulatedNetwork carries texts and bytes both ways, once a line is open", async () => {
  const { world, line, door, at } = await connected();
  deepStrictEqual([at.line, line.isOpen], [["open"], true]);
  line.send("hello");
  line.send(Uint8Array.of(1, 2));
  door.send("welcome");
  await world.run();
  deepStrictEqual(at, { door: ["hello", [1, 2]], line: ["open", "welcome"] });
});

Deno.test("SimulatedNetwork keeps the order of a socket's frames, however late", async () => {
  const seeds = fc.integer({ min: 0, max: 1e6 });
  await fc.assert(
    fc.asyncProperty(seeds, fc.nat(20), async (seed, count) => {
      const { world, line, at } = await connected({ seed, latency_ms: [0, 100] });
      const sent = Array.from({ length: count }, (_, n) => `frame ${n}`);
      sent.forEach((frame) => line.send(frame));
      await world.run();
      deepStrictEqual(at.door, sent);
    }),
    { numRuns: 50 },
  );
});

Deno.test("SimulatedNetwork: a frame takes at least the lower latency", async () => {
  const { world, line, at } = await connected({ latency_ms: [40, 60] });
  const { time_ms } = world;
  line.send("slow");
  await world.run({ limit_ms: time_ms + 39 });
  deepStrictEqual(at.door, []);
  await world.run({ limit_ms: time_ms + 60 });
  deepStrictEqual(at.door, ["slow"]);
});

Deno.test("SimulatedNetwork: a line to where nobody listens closes unopened", async () => {
  const world = new SimulatedWorld(1);
  const network = new SimulatedNetwork(world);
  const heard: string[] = [];
  const line = network.line(world.start("agent")).connect(FILE, {
    open: () => heard.push("open"),
    frame: () => heard.push("frame"),
    closed: () => heard.push("closed"),
  });
  await world.run();
  deepStrictEqual([heard, line.isOpen], [["closed"], false]);
});

Deno.test("SimulatedNetwork: what was sent before a close arrives before it", async () => {
  const { world, line, at } = await connected();
  line.send("last words");
  line.terminate();
  line.send("too late");
  await world.run();
  deepStrictEqual(at, { door: ["last words", "closed"], line: ["open", "closed"] });
});

Deno.test("SimulatedNetwork.cut() loses what is in flight, and both ends notice", async () => {
  const { world, network, line, door, at } = await connected({ latency_ms: [10, 10] });
  line.send("lost");
  door.send("lost too");
  // The ends notice it after the frames would have arrived.
  world.schedule(5, "a cut", () => network.cut());
  await world.run();
  deepStrictEqual(at, { door: ["closed"], line: ["open", "closed"] });
});

Deno.test("SimulatedNetwork.silence() loses what is sent later, and no end notices", async () => {
  const { world, network, line, door, at } = await connected();
  line.send("in flight");
  network.silence();
  line.send("lost");
  door.send("lost too");
  await world.run();
  deepStrictEqual(at, { door: ["in flight"], line: ["open"] });
  strictEqual(line.isOpen, true);
});

Deno.test("SimulatedNetwork: the death of a process closes the other end of its line", async () => {
  const { world, engine, at } = await connected();
  engine.kill();
  await world.run();
  deepStrictEqual(at, { door: [], line: ["open", "closed"] });
});

Deno.test("SimulatedNetwork: the hub's file is there from announcing to withdrawal", async () => {
  const world = new SimulatedWorld(1);
  const network = new SimulatedNetwork(world, [10, 10]);
  const [engine, agent] = [world.start("engine"), world.start("agent")];
  const [door, line] = [network.door(engine), network.line(agent)];
  const announced = door.announce(FILE);
  strictEqual(line.hub(), null);
  await world.run();
  await announced;
  deepStrictEqual([line.hub(), door.announced(), world.time_ms], [FILE, FILE, 10]);
  await door.withdraw();
  strictEqual(line.hub(), null);
});
