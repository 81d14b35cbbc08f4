import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import process from "node:process";
import { systemClock } from "../../../engine/mod.ts";
import {
  homeNonce,
  leftBehind,
  type Nonce,
  NONCE_VARIABLE,
  nonceCarriers,
  nonceText,
  processNonce,
  processStart,
  processUsing,
  sameNonce,
  sweep,
} from "../../../workers/processes/process_sweep.ts";
import { withHome } from "../fixtures.ts";

function sleeper(nonce: Nonce): Deno.ChildProcess {
  const env = { [NONCE_VARIABLE]: nonceText(nonce) };
  return new Deno.Command("sleep", {
    args: ["600"],
    env,
    detached: true,
    stdin: "null",
    stdout: "null",
  }).spawn();
}

Deno.test("sweep() ends only the chosen carriers, in whatever session they are", async () => {
  const home = crypto.randomUUID();
  const doomed = processNonce(home, "run");
  const spared = processNonce(home, "other");
  const children = [sleeper(doomed), sleeper(doomed), sleeper(spared)];
  try {
    strictEqual(nonceCarriers().filter(({ nonce }) => nonce.home === home).length, 3);
    strictEqual(await sweep(sameNonce(doomed), { clock: systemClock }), 2);
    const survivors = nonceCarriers().filter(({ nonce }) => nonce.home === home);
    deepStrictEqual(survivors.map(({ pid }) => pid), [children[2]!.pid]);
  } finally {
    await sweep((nonce) => nonce.home === home, { clock: systemClock });
    await Promise.all(children.map((child) => child.status));
  }
});

Deno.test("a nonce tells the hosts of a run apart: each ends and keeps its own", async () => {
  const runNonce = { ...processNonce(crypto.randomUUID(), "run"), host: "one" };
  const other = { ...runNonce, host: "two" };
  const here = { ...runNonce, host: undefined };
  const processes = [runNonce, other, here].map(sleeper);
  try {
    strictEqual(await sweep(sameNonce(runNonce), { clock: systemClock }), 1);
    strictEqual((await processes[0]!.status).signal, "SIGKILL");
    const isAbandoned = leftBehind(runNonce, [other]);
    deepStrictEqual([runNonce, other, here].map(isAbandoned), [true, false, true]);
    const carried = nonceCarriers().filter(({ nonce }) => nonce.home === runNonce.home);
    deepStrictEqual(new Set(carried.map(({ nonce }) => nonce.host)), new Set(["two", undefined]));
  } finally {
    await sweep((nonce) => nonce.home === runNonce.home, { clock: systemClock });
    await Promise.all(processes.map(({ status }) => status));
  }
});

Deno.test("leftBehind() is what earlier engines of the run and dead engines left", () => {
  const runNonce = processNonce("h", "run");
  const isAbandoned = leftBehind(runNonce);
  const dead = { engine_pid: 2 ** 22 - 1, engine_start: "1" };
  // The pid lives, but it is another process.
  const recycled = { engine_pid: process.pid, engine_start: "1" };
  deepStrictEqual(
    {
      sameRun: isAbandoned(runNonce),
      sameRunOfDead: isAbandoned({ ...runNonce, ...dead }),
      otherRunAlive: isAbandoned({ ...runNonce, run: "other" }),
      otherRunDead: isAbandoned({ ...runNonce, run: "other", ...dead }),
      otherRunRecycled: isAbandoned({ ...runNonce, run: "other", ...recycled }),
      otherHome: isAbandoned({ ...runNonce, home: "another", ...dead }),
    },
    {
      sameRun: true,
      sameRunOfDead: true,
      otherRunAlive: false,
      otherRunDead: true,
      otherRunRecycled: true,
      otherHome: false,
    },
  );
});

Deno.test("homeNonce() is made once, also by several at a time", () =>
  withHome(async (home) => {
    const nonces = new Set(await Promise.all([1, 2, 3, 4].map(() => homeNonce(home))));
    strictEqual(nonces.size, 1);
    ok([...nonces][0]!.length >= 32);
  }));

Deno.test("processStart() tells a living process from one that is gone", async () => {
  const child = new Deno.Command("true").spawn();
  await child.status;
  strictEqual(processStart(child.pid), null);
  ok(Number(processStart(process.pid)) > 0);
});

Deno.test("processUsing() finds a process that a directory has the program of", () =>
  withHome(async (home) => {
    strictEqual(await processUsing(home), null);
    await Deno.symlink("/bin/sleep", `${home}/python`);
    const named = new Deno.Command(`${home}/python`, { args: ["600"] }).spawn();
    strictEqual(await processUsing(home), named.pid);
    named.kill("SIGKILL");
    await named.status;
    strictEqual(await processUsing(home), null);
    strictEqual(await processUsing(`${home}/none`), null);
  }));
