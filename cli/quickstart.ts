import { parseConfig } from "../configs/mod.ts";
import { BeforeRecording } from "./before_recording.ts";
import type { GlobalOptions } from "./global_options.ts";
import { NO_RUN, startRun } from "./start_run.ts";

const QUICKSTART = new URL("../configs/quickstart.yaml", import.meta.url);

/** What the command line does without a verb. Returns the exit code. */
export async function quickstart(globals: GlobalOptions): Promise<number> {
  return await new BeforeRecording({ nothing: NO_RUN }).during(async (early) => {
    const text = await Deno.readTextFile(QUICKSTART);
    const loaded = await parseConfig(text, { file: QUICKSTART.pathname });
    return await globals.withHome((home) => startRun(home, loaded, { id: globals.id, early }));
  });
}
