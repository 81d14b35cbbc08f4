import type { z } from "zod";
import { type ErrorJson, type RunHead } from "../engine/mod.ts";
import {
  forkableRound,
  type Home,
  newestForkable,
  recordedConfig,
  recordedDefinition,
} from "../runs/mod.ts";
import { advisedSettings } from "./advised_settings.ts";
import { rootOf } from "./display/failure_text.ts";
import { command, quoted } from "./display/output.ts";

/**
 * How to continue after a failure: a resume, or, if a record is lost, a fork that does not need
 * it.
 */
export async function afterFailure(
  home: Home,
  { head, error }: { head: RunHead; error: ErrorJson },
): Promise<string> {
  const resume = command(home, `resume ${head.id}`);
  if (rootOf(error).code !== "lost_record") {
    // The run's end is printed even if this fails.
    const advised = await forksAdvised(home, { head, error }).catch(() => []);
    const way = isForNewRun(rootOf(error).message)
      ? "Nothing recorded is lost, but a resume would fail alike"
      : `Nothing recorded is lost. Fix the cause, then resume with: ${resume}`;
    return [way, ...advised].join("\n");
  }
  const whole = await newestForkable(home, head);
  const restored = `Restore it from a copy, then resume with: ${resume}`;
  if (whole === null) {
    return `${restored}\nWithout a copy the run can be neither resumed nor forked: start a new one`;
  }
  const { loop, round } = whole;
  const place = loop === null ? `${round}` : `${loop}/${round}`;
  const kept = round === 0
    ? "Everything before the first round"
    : `Everything up to round ${round}`;
  return `${restored}\n${kept}${
    loop === null ? "" : ` of '${loop}'`
  } is intact. To drop what came later: ${command(home, `fork ${head.id} --round ${place}`)}`;
}

/** Whether an error's only way on is a new run: what the run has recorded has the cause. */
function isForNewRun(message: string): boolean {
  return /\bstart a new run\b/.test(message) &&
    !/\b(?:resume|restore|undo)\b|\bor start a new run\b/i.test(message);
}

/** What a resume cannot change and the error may ask for: the forks that can. */
async function forksAdvised(
  home: Home,
  { head, error }: { head: RunHead; error: ErrorJson },
): Promise<string[]> {
  const { message, cause_kind } = rootOf(error);
  const { definition } = await recordedDefinition(home.store, head, { accept: true });
  const lines = await settingForks(home, { head, schema: definition.config, text: message });
  const file = cause_kind === "user_code" ? algorithmFile(head) : null;
  if (file === null) return lines;
  return [
    ...lines,
    `If the cause is in ${file}: a resume keeps the recorded version. ${await forkOf(home, head)}`,
  ];
}

type Advising = { head: RunHead; schema: z.ZodType; text: string };

/** For each advised setting that a resume cannot change: the fork that can, or that none can. */
async function settingForks(home: Home, { head, schema, text }: Advising): Promise<string[]> {
  const settings = advisedSettings(schema, text).filter(({ resume }) => !resume);
  return await Promise.all(settings.map(async ({ path, value }) => {
    const fork = await forkableRound(home, head, value === null ? [] : [`${path}=${value}`]);
    if ("refused" in fork) {
      return `Neither a resume nor a fork can change ${path} of this run: start a new one`;
    }
    const words = ["fork", head.id, "--round", String(fork.round), `${path}=${value ?? "VALUE"}`];
    return `A resume cannot change ${path}, but a fork can: ${
      command(home, words.map(quoted).join(" "))
    }`;
  }));
}

/** The fork that uses the current version of an algorithm's file. */
export async function forkOf(home: Home, head: RunHead): Promise<string> {
  const fork = await forkableRound(home, head, []);
  if ("refused" in fork) return "To use the current version, start a new run";
  return `To use the current version: ${command(home, `fork ${head.id} --round ${fork.round}`)}`;
}

function algorithmFile(head: RunHead): string | null {
  const { algorithm } = recordedConfig(head) as {
    algorithm?: { name?: string; source?: string };
  };
  return algorithm?.name === "python" ? algorithm.source ?? null : null;
}
