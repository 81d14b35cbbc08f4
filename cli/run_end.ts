/** How a run ended, in its last lines. */
import { existsSync } from "node:fs";
import type { Outcome, RunHead } from "../engine/mod.ts";
import { PreparedData } from "../flows/mod.ts";
import { type Home, runView } from "../runs/mod.ts";
import { afterFailure } from "./after_failure.ts";
import { EXIT } from "./exit.ts";
import { failureText } from "./display/failure_text.ts";
import { command } from "./display/output.ts";

/** Warns about a run that trained nothing. */
export async function warnIfUntrained(
  home: Home,
  head: RunHead,
  note: (text: string) => void,
): Promise<void> {
  const { untrained } = await runView(home.store, head, { workers: [], metrics: {} });
  if (untrained !== null) {
    note(
      `WARNING: run ${head.id} trained nothing: in all its rounds ${untrained}. Its model ` +
        "is unchanged",
    );
  }
}

type Reporting = { outcome: Outcome; home: Home; note: (text: string) => void };

/** The last lines of a run, by how it ended. Returns the exit code. */
export async function reportEnd(
  head: RunHead,
  { outcome, home, note }: Reporting,
): Promise<number> {
  switch (outcome.status) {
    case "done":
      await warnIfUntrained(home, head, note);
      note(
        `run ${head.id} is done.${whatIsIn(home.runDir(head.id), outcome.output)} Look at it ` +
          `with: ${command(home, `show ${head.id}`)}`,
      );
      return EXIT.done;
    case "failed":
      note(`run ${head.id} failed: ${failureText(outcome.error, { run: head.id, home })}`);
      note(await afterFailure(home, { head, error: outcome.error }));
      return EXIT.failed;
    case "cancelled":
      note(`run ${head.id} was cancelled`);
      return EXIT.failed;
    case "fenced":
      note(`run ${head.id} was taken over by another engine; this one has stopped`);
      return EXIT.failed;
    case "interrupted":
      note(`run ${head.id} is interrupted. Resume with: ${command(home, `resume ${head.id}`)}`);
      return EXIT.interrupted;
  }
}

/** Where training flows leave their last policy, and the prepare flow its data. */
function whatIsIn(runDir: string, output: unknown): string {
  const prepared = PreparedData.safeParse(output).data;
  if (prepared !== undefined) return ` The data is in ${prepared.dir}.`;
  const dir = `${runDir}/final`;
  return existsSync(dir) ? ` The model is in ${dir}.` : "";
}
