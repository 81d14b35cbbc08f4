import { InvalidInputError, type RunHead } from "../engine/mod.ts";
import { forkableRound, type Home, type Resumable, resumable } from "../runs/mod.ts";
import { command, quoted } from "./output.ts";

/**
 * What `resume RUN a.b=c ...` goes on with.
 * @throws {InvalidInputError} For a setting that results follow from: it names the fork that has it, if one can.
 */
export async function resumeOverrides(home: Home, head: RunHead, texts: readonly string[]): Promise<Resumable> {
  const found = await resumable(home, head, texts);
  if (found.refused.length === 0) return found;
  const paths = found.refused.map(({ path }) => path);
  const fork = await forkableRound(home, head, texts);
  const fix = "round" in fork
    ? `Fix: start a run with it from round ${fork.round}:\n` +
      `  next: ${command(home, ["fork", head.id, "--round", String(fork.round), ...texts].map(quoted).join(" "))}`
    : `A fork cannot have it either: ${fork.refused}\nFix: start a new run with it`;
  throw new InvalidInputError(
    `Cannot resume run '${head.id}' with a different ${
      paths.join(", ")
    } because recorded results follow from it; a resume ` +
      `may change limits, ports, devices, the number of samplers and checkpoints. ${fix}`,
    { run: head.id, paths },
  );
}
