/**
 * An engine to be killed: starts one group of the echo worker, prints the process ids of its ranks and their children as one
 * line of JSON, and waits. Arguments: HOME, interpreter.
 */
import { Workers } from "../../workers/mod.ts";
import { groupSpec } from "./fixtures.ts";

const [home, python] = Deno.args as [string, string];
const env = { PYTHONPATH: new URL("../python", import.meta.url).pathname };
const workers = await Workers.start({ run: "run", epoch: 1, attempt: 1, home, python, env });
const group = workers.group(groupSpec({ ranks: 2, python, spec: { children: 1 } }));
const { outputs } = await group.call("pids", {}, { key: "k", attempt: 1 });
const pids = (outputs as { pid: number; children: number[]; parent: number }[]).flatMap((
  o,
) => [o.pid, o.parent, ...o.children]);
console.log(JSON.stringify([...new Set(pids)]));
await group.call("hang", {}, { key: "k", attempt: 1 });
