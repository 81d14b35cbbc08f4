import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import {
  type Fault,
  FAULT_EVENTS,
  FAULT_KINDS,
  FAULT_PLACES,
  Faults,
  parseFaults,
  printFault,
} from "../../../workers/failures/faults.ts";
import type { InvalidInputError } from "../../../engine/errors.ts";

async function withDirectory(body: (dir: string) => Promise<void> | void): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Of workers; the run says which there are. */
const ROLES = ["trainer", "sampler"];

const names = (dir: string) => [...Deno.readDirSync(dir)].map((entry) => entry.name).sort();

Deno.test("parseFaults() reads whatever printFault() writes", () => {
  const fault: fc.Arbitrary<Fault> = fc.record({
    kind: fc.constantFrom(...FAULT_KINDS),
    place: fc.constantFrom(...FAULT_PLACES, ...ROLES),
    rank: fc.option(fc.nat(63)),
    event: fc.constantFrom(...FAULT_EVENTS),
    n: fc.integer({ min: 1, max: 1_000_000 }),
  }, { noNullPrototype: true }).filter(({ kind, place }) =>
    kind !== "oom" || !["engine", "agent"].includes(place)
  );
  fc.assert(fc.property(fc.array(fault), (faults) => {
    deepStrictEqual(parseFaults(faults.map(printFault).join(","), ROLES), faults);
  }));
  deepStrictEqual(parseFaults(undefined), []);
});

Deno.test("the workers' half of the grammar knows the same kinds, places and events", async () => {
  const python = await Deno.readTextFile(
    new URL("../../../workers/python/holdfast_worker/faults.py", import.meta.url),
  );
  const tuple = (name: string) =>
    JSON.parse(`[${new RegExp(`^${name} = \\((.*)\\)$`, "m").exec(python)![1]}]`);
  deepStrictEqual(tuple("KINDS"), [...FAULT_KINDS]);
  match(python, /^PLACES = \("engine", "agent", \*ROLES\)$/m);
  deepStrictEqual([...FAULT_PLACES], ["engine", "agent"]);
  deepStrictEqual(tuple("EVENTS"), [...FAULT_EVENTS]);
});

Deno.test("parseFaults() says which part is wrong and what it may be", () => {
  const cases: [string, RegExp][] = [
    ["kill", /'kill' of HOLDFAST_FAULT because it is not of the form KIND:PLACE\[\.RANK\]@EVENT:N/],
    [
      "maim:engine@append:1",
      /its kind is 'maim': it must be one of kill, stop, drop, disk_full, oom/,
    ],
    ["oom:agent@op:1", /'agent' has no device whose memory could run out: use trainer or sampler/],
    [
      "kill:moon@append:1",
      /its place is 'moon': it must be one of engine, agent, trainer, sampler/,
    ],
    ["kill:trainer.x@op:1", /its rank is 'x': it must be a whole number from 0/],
    ["kill:engine@lunch:1", /its event is 'lunch': it must be one of append, frame, op/],
    ["kill:engine@append:0", /its count is '0': it must be a whole number from 1/],
    ["kill:engine@append:1.5", /its count is '1.5'/],
    ["kill:engine@append:1,", /fault '' of HOLDFAST_FAULT/],
  ];
  for (const [text, message] of cases) {
    throws(() => parseFaults(text, ROLES), (error: InvalidInputError) => {
      strictEqual(error.code, "invalid_input");
      match(error.message, message);
      return true;
    });
  }
});

Deno.test("Faults.at() fires once per run, at the Nth event, after writing its marker", () =>
  withDirectory((dir) => {
    const fired: string[] = [];
    const start = () =>
      Faults.parse("kill:engine@append:2,stop:engine@frame:1,kill:trainer@append:1", {
        roles: ROLES,
        dir: `${dir}/faults`,
        place: "engine",
        kill: (kind) => fired.push(`${kind} ${names(`${dir}/faults`).join(" ")}`),
      });
    const faults = start();
    faults.at("append", "training");
    deepStrictEqual(fired, []);
    faults.at("append", "training");
    faults.at("frame", "other");
    faults.at("append", "training");
    deepStrictEqual(fired, [
      "kill kill:engine@append:2",
      "stop kill:engine@append:2 stop:engine@frame:1",
    ]);
    const again = start(); // The process that comes back counts from 1 and passes its own grave.
    for (let i = 0; i < 3; i++) again.at("append", "training");
    strictEqual(fired.length, 2);
  }));

Deno.test("Faults: a fault without a rank is rank 0's, one with a rank is that rank's alone", () =>
  withDirectory((dir) => {
    const fired = (text: string, rank: number) => {
      let count = 0;
      const faults = Faults.parse(text, {
        dir: `${dir}/${rank}`,
        place: "trainer",
        roles: ROLES,
        rank,
        kill: () => count++,
      });
      faults.at("op", "training");
      return count;
    };
    deepStrictEqual([fired("kill:trainer@op:1", 0), fired("kill:trainer@op:1", 1)], [1, 0]);
    deepStrictEqual([fired("kill:trainer.1@op:1", 0), fired("kill:trainer.1@op:1", 1)], [0, 1]);
  }));

Deno.test("Faults: drop is a verdict for the caller, disk_full throws as a full disk would", () =>
  withDirectory((dir) => {
    const faults = Faults.parse("drop:engine@frame:2,disk_full:engine@append:1", {
      dir,
      place: "engine",
    });
    deepStrictEqual([1, 2, 3].map(() => faults.at("frame")), ["go", "drop", "go"]);
    throws(() => faults.at("append", "training"), { code: "infrastructure", retryable: false });
    strictEqual(faults.at("append", "training"), "go");
  }));

Deno.test("Faults writes every event as one JSON line when it is asked to", () =>
  withDirectory((dir) => {
    const faults = Faults.parse("", { dir, place: "engine", events: `${dir}/events` });
    faults.at("append", "generation");
    faults.at("frame");
    faults.at("append", "training");
    const lines = Deno.readTextFileSync(`${dir}/events`).trimEnd().split("\n").map((line) =>
      JSON.parse(line)
    );
    deepStrictEqual(lines, [
      { place: "engine", rank: 0, event: "append", n: 1, phase: "generation" },
      { place: "engine", rank: 0, event: "frame", n: 1, phase: "other" },
      { place: "engine", rank: 0, event: "append", n: 2, phase: "training" },
    ]);
  }));

Deno.test("Faults: kill sends SIGKILL at its event; the run's next process passes it", () =>
  withDirectory(async (dir) => {
    const script = new URL("./faulty_child.ts", import.meta.url).pathname;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", script, `${dir}/faults`],
      env: { HOLDFAST_FAULT: "kill:engine@append:3", HOLDFAST_EVENTS: `${dir}/events` },
    });
    const first = await child.output();
    deepStrictEqual([first.signal, new TextDecoder().decode(first.stdout)], ["SIGKILL", "1 2 "]);
    // The fatal event is listed.
    strictEqual(Deno.readTextFileSync(`${dir}/events`).trimEnd().split("\n").length, 3);
    const second = await child.output();
    deepStrictEqual([second.code, new TextDecoder().decode(second.stdout)], [0, "1 2 3 4 5 "]);
  }));
