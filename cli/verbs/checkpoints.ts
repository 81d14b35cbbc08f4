import { recordedValue } from "../../engine/mod.ts";
import {
  type CheckpointFacts,
  findRun,
  type Home,
  newestRun,
  readCheckpoints,
} from "../../runs/mod.ts";
import { problemText, type SetAside } from "../../workers/mod.ts";
import { print, printJson, table } from "../display/output.ts";
import { EXIT } from "../exit.ts";
import { ARGUMENTS } from "../arguments.ts";
import { defineVerb } from "../verb.ts";
import { flag, json } from "../options.ts";

/** `checkpoints [RUN]`: each with its directory and what keeps it. Fails if one is damaged. */
export const checkpointsVerb = defineVerb({
  name: "checkpoints",
  about: "list checkpoints",
  arguments: { "[run]": ARGUMENTS.run },
  options: { json, verify: flag("check every file against its hash") },
  async action({ args, flags, globals }) {
    const whole = await globals.withHome((home) => listCheckpoints(home, args.run, flags));
    return whole ? EXIT.done : EXIT.failed;
  },
});

/** `verify`: checks every file against its recorded hash. Returns false if one is damaged. */
async function listCheckpoints(
  home: Home,
  id: string | undefined,
  options: { json?: boolean; verify?: boolean },
): Promise<boolean> {
  const list = await readCheckpoints(home, id, { verify: options.verify === true });
  if (options.json) printJson(list);
  else if (list.length === 0) print("no checkpoint yet");
  else {
    const several = new Set(list.map(({ group }) => group)).size > 1;
    const line = (c: CheckpointFacts) => [
      c.version.slice(0, 12),
      ...(several ? [c.group] : []),
      c.round === null ? "-" : String(c.round),
      String(c.world_size),
      `${(c.bytes / 2 ** 20).toFixed(1)} MiB`,
      c.kept.join(", "),
      c.problem ?? (c.verified ? "whole" : "not checked"),
      `${c.dir}/hf`,
    ];
    print(
      table(
        [
          "version",
          ...(several ? ["group"] : []),
          "round",
          "ranks",
          "size",
          "kept as",
          "state",
          "open with from_pretrained",
        ],
        list.map(line),
      ),
    );
  }
  if (!options.json) {
    for (const aside of await readSetAside(home, id)) print(aside);
  }
  return list.every(({ problem }) => problem === null);
}

/** A line for each damaged checkpoint. */
async function readSetAside(home: Home, id: string | undefined): Promise<string[]> {
  const head = await findRun(home, id ?? await newestRun(home));
  const rows = await home.store.read(head.id, { kinds: ["note/checkpoint_set_aside"] });
  return rows.map((row) => {
    const aside = recordedValue(row) as SetAside;
    return `set aside: ${problemText(aside)}; it is in ${aside.to}`;
  });
}
