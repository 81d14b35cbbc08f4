import {
  findRun,
  type Home,
  newestRun,
  otherRelease,
  type VerifiedVersion,
  verifyRun,
} from "../../runs/mod.ts";
import { print, printJson, table, tell } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { EXIT } from "../exit.ts";
import { json, whole } from "../options.ts";

/** `verify [RUN]`: redoes the log on a separate trainer and compares. Fails unless all is equal. */
export const verifyVerb = defineVerb({
  name: "verify",
  about: "redo a run's batches on a separate trainer and compare the results with the record",
  arguments: { "[run]": ARGUMENTS.run },
  options: {
    json,
    from: whole("<n>", "compare from this batch on; earlier batches are still redone"),
  },
  async action({ args, flags, globals }) {
    const equal = await globals.withHome((home) => verify(home, args.run, flags));
    return equal ? EXIT.done : EXIT.failed;
  },
});

/** Returns whether everything was equal. */
async function verify(
  home: Home,
  id: string | undefined,
  options: { json?: boolean; from?: number },
): Promise<boolean> {
  const head = await findRun(home, id ?? await newestRun(home));
  const other = await otherRelease(home.store, head);
  if (other) tell(`run ${head.id}: ${other}. If something differs, that may be the reason`);
  const verified = await verifyRun(home, head, {
    from: options.from,
    onVersion: (version) => tell(sentence(version)),
    onSetup: ({ text }) => tell(text),
  });
  if (options.json) printJson(verified);
  else {
    const several = verified.versions.some(({ group }) => group !== undefined);
    const rows = verified.versions.map((v) => [
      v.round ?? "-",
      ...(several ? [v.group ?? "trainer"] : []),
      String(v.number),
      v.version.slice(0, 12),
      v.steps,
      v.digest,
    ]);
    print(
      table(
        ["round", ...(several ? ["group"] : []), "batches", "version", "steps", "digest"],
        rows,
      ),
    );
    print(
      verified.equal
        ? `run ${head.id} matches its record`
        : different(head.id, verified.versions.at(-1)!),
    );
  }
  return verified.equal;
}

function sentence({ round, group, number, steps, digest }: VerifiedVersion): string {
  const where = [round, group].filter((part) => part != null).join(", ");
  return `redid batch ${number}${where === "" ? "" : ` (${where})`}: steps ${steps}, digest ${
    digest.replace("_", " ")
  }`;
}

function different(id: string, { number, detail }: VerifiedVersion): string {
  return `run ${id} differs at batch ${number}: ${detail}`;
}
