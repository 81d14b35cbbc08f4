/**
 * The checkers of our Python, pinned by version and hash: ruff by pip, pyright by npm. They are
 * fetched on first use, for tests alone.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installedPackages } from "../../workers/environments/installed_packages.ts";
import { createOnce, placeOf } from "../../workers/environments/create_once.ts";
import { Creation } from "../../workers/environments/creation.ts";
import { environmentsDir } from "../../workers/mod.ts";
import { basePython } from "../../workers/environments/python_interpreter.ts";
import { installByPip } from "../../workers/environments/uv.ts";
import { ensureTestEnvironments } from "../environments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RUFF = new URL("../requirements/lint.txt", import.meta.url);
const PYRIGHT = fileURLToPath(new URL("./deno.json", import.meta.url));

type Done = { code: number; output: string };

async function run(
  command: string,
  args: string[],
  cwd: string,
): Promise<Done> {
  const env = { NO_COLOR: "1", PYRIGHT_PYTHON_IGNORE_WARNINGS: "1" };
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args,
    cwd,
    env,
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  return { code, output: text.decode(stdout) + text.decode(stderr) };
}

/** Path of ruff, installed on first use. */
async function ensureRuff(): Promise<string> {
  const python = await basePython();
  const text = await Deno.readTextFile(RUFF);
  const place = placeOf(environmentsDir(), {
    name: "lint",
    text,
    python: python.build,
  });
  const steps = new Creation(place, {
    onProgress: ({ text }) => console.log(text),
  });
  const interpreter = await createOnce(place, {
    onWait: () => steps.say("waiting for another process that is creating it"),
    make: (path) => installByPip(path, { python, steps, lock: RUFF }),
    check: (path) => installedPackages(path, { locks: [RUFF] }),
  });
  return join(dirname(interpreter), "ruff");
}

export async function ruff(args: string[], cwd = ROOT): Promise<Done> {
  return await run(await ensureRuff(), args, cwd);
}

type Report = {
  generalDiagnostics: { file: string; severity: string }[];
  summary: { filesAnalyzed: number };
};

/**
 * How many errors pyright finds in each file of a directory with a `pyproject.toml`; no file
 * without one.
 */
export async function pyright(
  cwd = ROOT,
): Promise<{ files: number; errors: Record<string, number> }> {
  const { HOLDFAST_TEST_DEEPSPEED_PYTHON } = await ensureTestEnvironments();
  const args = [
    "run",
    "-A",
    "--quiet",
    "--config",
    PYRIGHT,
    "npm:pyright@1.1.414",
  ];
  const options = [
    "--outputjson",
    "--project",
    cwd,
    "--pythonpath",
    HOLDFAST_TEST_DEEPSPEED_PYTHON!,
  ];
  const { output } = await run(Deno.execPath(), [...args, ...options], cwd);
  const { generalDiagnostics, summary } = JSON.parse(
    output.slice(output.indexOf("{")),
  ) as Report;
  const errors: Record<string, number> = {};
  for (const { file, severity } of generalDiagnostics) {
    if (severity !== "error") continue;
    const path = file.slice(`${cwd.replace(/\/$/, "")}/`.length);
    errors[path] = (errors[path] ?? 0) + 1;
  }
  return { files: summary.filesAnalyzed, errors };
}
