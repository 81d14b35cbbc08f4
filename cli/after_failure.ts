import type { ErrorJson, RunHead } from "../engine/mod.ts";
import { type Home, newestForkable } from "../flows/mod.ts";
import { rootOf } from "./failure_text.ts";
import { command } from "./output.ts";

/** How a run that failed can be gone on with: a resume, or where something recorded is lost the fork that needs none of it. */
export async function afterFailure(
  home: Home,
  { head, error }: { head: RunHead; error: ErrorJson },
): Promise<string> {
  const resume = command(home, `resume ${head.id}`);
  if (rootOf(error).code !== "lost_record") {
    return `Nothing recorded is lost. Mend the cause, then go on with: ${resume}`;
  }
  const whole = await newestForkable(home, head);
  const restored = `Put it back from a copy, then go on with: ${resume}`;
  if (whole === null) {
    return `${restored}\nWithout a copy the run cannot be gone on with, nor forked from any round: start a new one`;
  }
  const { loop, round } = whole;
  const place = loop === null ? `${round}` : `${loop}/${round}`;
  const kept = round === 0 ? "All before the first round" : `All up to round ${round}`;
  return `${restored}\n${kept}${loop === null ? "" : ` of '${loop}'`} is whole. To leave what came later behind: ${
    command(home, `fork ${head.id} --round ${place}`)
  }`;
}
