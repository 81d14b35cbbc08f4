import { InvalidInputError, type RunHead } from "../engine/mod.ts";
import { forkableRound, type Home, type Resumable, resumable } from "../runs/mod.ts";
import { command, quoted } from "./display/output.ts";

/**
 * What `resume RUN a.b=c ...` continues with.
 * @throws {InvalidInputError} For a setting that results depend on: it names the fork that can
 * change it, if any.
 */
export async function resumeOverrides(
  home: Home,
  head: RunHead,
  { overrides: texts, accept }: { overrides: readonly string[]; accept?: boolean },
): Promise<Resumable> {
  const found = await resumable(home, head, { overrides: texts, accept });
  if (found.refused.length === 0) return found;
  const paths = found.refused.map(({ path }) => path);
  const fork = await forkableRound(home, head, texts);
  const words = [...(accept ? ["--accept"] : []), ...texts]; // Nothing has recorded it yet.
  const fix = "round" in fork
    ? `Fix: start a run with it from round ${fork.round}:\n` +
      `  next: ${
        command(
          home,
          ["fork", head.id, "--round", String(fork.round), ...words].map(quoted).join(" "),
        )
      }`
    : `A fork cannot change it either: ${fork.refused}\nFix: start a new run with it`;
  throw new InvalidInputError(
    `Cannot resume run '${head.id}' with a different ${
      paths.join(", ")
    } because recorded results depend on it; a resume ` +
      `can change limits, ports, devices, the number of samplers and checkpoints. ${fix}`,
    { run: head.id, paths },
  );
}
