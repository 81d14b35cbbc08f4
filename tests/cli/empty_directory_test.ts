import { deepStrictEqual, doesNotMatch, ok, strictEqual } from "node:assert/strict";
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

/**
 * Every command with what it says where there is nothing. Without a command there is the
 * quickstart: it needs no table.
 */
const COMMANDS: { args: string[]; code: number }[] = [
  { args: ["run", "none.yaml"], code: 2 },
  { args: ["eval", "none.yaml"], code: 2 },
  { args: ["fetch", "none.yaml"], code: 2 },
  { args: ["resume"], code: 2 },
  { args: ["resume", "none"], code: 2 },
  { args: ["fork", "none", "--round", "1"], code: 2 },
  { args: ["serve", "--until-idle"], code: 0 },
  { args: ["gc"], code: 0 },
  { args: ["cancel", "none"], code: 2 },
  { args: ["signal", "none", "go", "true"], code: 2 },
  { args: ["runs"], code: 0 },
  { args: ["show"], code: 2 },
  { args: ["logs"], code: 2 },
  { args: ["logs", "--follow"], code: 2 },
  { args: ["rollouts"], code: 2 },
  { args: ["checkpoints"], code: 2 },
  { args: ["verify"], code: 2 },
  { args: ["diff", "a", "b"], code: 2 },
  { args: ["why", "a", "round/1"], code: 2 },
  { args: ["plan", "none.yaml"], code: 2 },
  { args: ["reward", "test", "exact_match", "--data", "none.jsonl"], code: 2 },
  { args: ["loss", "show", "grpo"], code: 0 },
  { args: ["loss", "try", "grpo", "--batch", "none/1"], code: 2 },
  { args: ["data", "preview", "none.jsonl"], code: 2 },
  { args: ["doctor"], code: 0 },
  { args: ["config", "schema"], code: 0 },
  { args: ["config", "show", "none.yaml"], code: 2 },
];

/** The default home, one that several levels of it are missing, and one above. */
const HOMES = [[], ["--home", "a/b/home"], ["--home", "../beside"]];

for (const { args, code } of COMMANDS) {
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
        strictEqual(ended.code, code, ended.out + ended.err);
        doesNotMatch(ended.err, /^ +at .*\.ts:\d+/m, "a stack trace is no answer");
      }
    } finally {
      await Deno.remove(outer, { recursive: true });
    }
  });
}

Deno.test("the table above has every command", async () => {
  const verbs = async (args: string[]) => {
    const { out } = await rlIn(ROOT, [...args, "--help"]);
    const listed = out.slice(out.indexOf("Commands:")).matchAll(/^ {2}([a-z]+)/gm);
    return out.includes("Commands:")
      ? [...listed].map((match) => match[1]!).filter((name) => name !== "help")
      : [];
  };
  const first = await verbs([]);
  ok(first.length > 10);
  deepStrictEqual(first.filter((verb) => !COMMANDS.some(({ args }) => args[0] === verb)), []);
  for (const parent of ["reward", "loss", "data", "config"]) {
    const known = COMMANDS.filter(({ args }) => args[0] === parent).map(({ args }) => args[1]);
    deepStrictEqual((await verbs([parent])).filter((verb) => !known.includes(verb)), []);
  }
});
