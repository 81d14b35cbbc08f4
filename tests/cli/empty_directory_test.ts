import { doesNotMatch, ok, strictEqual } from "node:assert/strict";
import type { Verb } from "../../cli/verb.ts";
import { VERBS } from "../../cli/verbs/table.ts";
import { taskFlags } from "../task_flags.ts";
import { ROOT } from "./fixtures.ts";

/** Only what hangs meets it: it ends the command, and with it the wait. */
const HANGS_MS = 120_000;

type Ended = { code: number; signal: string | null; out: string; err: string };

async function rlIn(cwd: string, args: string[]): Promise<Ended> {
  const { code, signal, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...taskFlags("rl"), `${ROOT}cli/main.ts`, ...args],
    cwd,
    stdin: "null",
    env: { NO_COLOR: "1" },
    signal: AbortSignal.timeout(HANGS_MS),
  }).output();
  const text = new TextDecoder();
  return { code, signal, out: text.decode(stdout), err: text.decode(stderr) };
}

/** What a verb takes besides, or it would wait for work. */
const BESIDES: Record<string, string[]> = { serve: ["--until-idle"] };

/** A verb as it is typed with what it requires, and with all that it may be given: nothing exists. */
function typed({ name, arguments: usages, options }: Verb): string[][] {
  const required = Object.entries(options).filter(([, option]) => option.required)
    .flatMap(([option]) => [`--${option.replaceAll("_", "-")}`, "1"]);
  const of = (usage: string) => Object.keys(usages).filter((one) => one.startsWith(usage));
  const words = [...name.split(" "), ...of("<").map(() => "none")];
  const rest = [...required, ...BESIDES[name] ?? []];
  const optional = of("[").filter((usage) => !usage.includes("..."));
  return optional.length === 0
    ? [[...words, ...rest]]
    : [[...words, ...rest], [...words, ...optional.map(() => "none"), ...rest]];
}

/** The default home, one that several levels of it are missing, and one above. */
const HOMES = [[], ["--home", "a/b/home"], ["--home", "../beside"]];

for (const args of VERBS.flatMap(typed)) {
  Deno.test(`rl ${args.join(" ")} ends in an empty directory, whose home is named relatively`, async () => {
    const outer = await Deno.makeTempDir({ prefix: "cli_empty_" });
    try {
      const homes = args[0] === "doctor" ? HOMES : HOMES.slice(0, 1);
      for (const [i, home] of homes.entries()) {
        const cwd = `${outer}/${i}/empty`;
        await Deno.mkdir(cwd, { recursive: true });
        const takesHome = args.join(" ") !== "config schema";
        const ended = await rlIn(cwd, [...args, ...takesHome ? home : []]);
        strictEqual(
          ended.signal,
          null,
          `'${args.join(" ")} ${home.join(" ")}' hangs:\n${ended.out}${ended.err}`,
        );
        const codes = args.includes("none") && args[0] !== "runs" ? [2] : [0, 2]; // It lists none.
        ok(codes.includes(ended.code), `${ended.code}: ${ended.out}${ended.err}`);
        doesNotMatch(ended.err, /^ +at .*\.ts:\d+/m, "a stack trace is no answer");
      }
    } finally {
      await Deno.remove(outer, { recursive: true });
    }
  });
}
