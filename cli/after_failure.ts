import type { ErrorJson, RunHead } from "../engine/mod.ts";
import { forkableRound, type Home, newestForkable, recordedDefinition } from "../flows/mod.ts";
import { advisedSettings } from "./advised_settings.ts";
import { rootOf } from "./failure_text.ts";
import { command, quoted } from "./output.ts";

/** How a run that failed can be gone on with: a resume, or where something recorded is lost the fork that needs none of it. */
export async function afterFailure(
  home: Home,
  { head, error }: { head: RunHead; error: ErrorJson },
): Promise<string> {
  const resume = command(home, `resume ${head.id}`);
  if (rootOf(error).code !== "lost_record") {
    const { message: text } = rootOf(error);
    const forks = await forksAdvised(home, { head, text }).catch(() => []); // The run's end is told whatever comes of this.
    return [`Nothing recorded is lost. Mend the cause, then go on with: ${resume}`, ...forks].join("\n");
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

/** For each setting that an error advises and a resume cannot change: the fork that can, or that none can. */
async function forksAdvised(home: Home, { head, text }: { head: RunHead; text: string }): Promise<string[]> {
  const { definition } = await recordedDefinition(head);
  const settings = advisedSettings(definition.config, text).filter(({ resume }) => !resume);
  return await Promise.all(settings.map(async ({ path, value }) => {
    const fork = await forkableRound(home, head, value === null ? [] : [`${path}=${value}`]);
    if ("refused" in fork) return `Neither a resume nor a fork can change ${path} of this run: start a new one`;
    const words = ["fork", head.id, "--round", String(fork.round), `${path}=${value ?? "VALUE"}`];
    return `A resume cannot change ${path}, but a fork can: ${command(home, words.map(quoted).join(" "))}`;
  }));
}
