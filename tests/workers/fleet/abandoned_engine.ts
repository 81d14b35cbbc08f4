/**
 * An engine to be killed or frozen: starts one group of the echo worker, prints the process ids of
 * its ranks, their children and its agent as one line of JSON, and runs an operation that waits for
 * a file. When it learns that another engine has the run it prints `fenced` and ends. Arguments:
 * HOME, interpreter, file, grace in milliseconds.
 */
import { FencedError } from "../../../engine/mod.ts";
import { Workers } from "../../../workers/mod.ts";
import { groupSpec } from "../fixtures.ts";

const [home, python, file, grace] = Deno.args as [string, string, string, string];
const env = { PYTHONPATH: new URL("../../python", import.meta.url).pathname };
const workers = await Workers.start({
  run: "run",
  epoch: 1,
  attempt: 1,
  home,
  python,
  env,
  grace_ms: Number(grace),
});
const group = workers.group(groupSpec({ ranks: 2, python, spec: { children: 1 } }));
const { outputs } = await group.call("pids", {}, { key: "pids", attempt: 1 });
const recorded = () => new Promise<void>(() => {}); // It dies before the row is durable.
await group.call("count", {}, { key: "k", attempt: 1, recorded });
const pids = (outputs as { pid: number; children: number[]; parent: number }[]).flatMap((
  o,
) => [o.pid, o.parent, ...o.children]);
let begun = () => {};
const waiting = group.call("wait_for", { file }, {
  key: "k",
  attempt: 1,
  onProgress: () => begun(),
});
await new Promise<void>((resolve) => begun = resolve);
console.log(JSON.stringify([...new Set(pids)]));
try {
  await waiting;
} catch (error) {
  if (!(error instanceof FencedError)) throw error;
  await workers.stop();
  console.log("fenced");
}
Deno.exit(0);
