/**
 * `deno task lock`: writes the requirements of every `.in` file with their versions and the hashes
 * of all platforms into the `.txt` next to it. A locked version stays unless its `.in` requires a
 * different one: delete the `.txt` for the newest.
 */
import { fileURLToPath } from "node:url";
import { environmentsDir, makeEnvironmentsDir } from "./environments_dir.ts";
import { placeOf } from "./create_once.ts";
import { Creation } from "./creation.ts";
import { basePython, PYTHON_MINOR_MIN } from "./python_interpreter.ts";
import { Uv } from "./uv.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WORKERS = "workers/python/requirements";

const UNLOCKED = ["--excludes", `${WORKERS}/not_locked.txt`];
const LIKE_TORCH = [...UNLOCKED, "--constraints", `${WORKERS}/torch.txt`];
/** What PyTorch requires besides CUDA's libraries: it is in each environment's requirements. */
const NEEDS = [
  "filelock",
  "typing-extensions",
  "setuptools",
  "sympy",
  "mpmath",
  "networkx",
  "jinja2",
  "markupsafe",
  "fsspec",
];

/** In this order: some are constrained by an earlier one. */
export const LOCKS: { path: string; args: string[] }[] = [
  { path: `${WORKERS}/uv`, args: [] },
  { path: `${WORKERS}/torch`, args: UNLOCKED },
  { path: `${WORKERS}/deepspeed`, args: LIKE_TORCH },
  { path: "tests/requirements/trl", args: LIKE_TORCH },
  { path: "tests/requirements/lint", args: [] },
  { path: "examples/reasoning_gym/requirements", args: [] },
  { path: `${WORKERS}/trackers`, args: [] },
  { path: `${WORKERS}/hub`, args: LIKE_TORCH },
  { path: `${WORKERS}/vllm_cpu`, args: UNLOCKED },
  { path: `${WORKERS}/vllm_cuda`, args: [] },
  {
    path: `${WORKERS}/pytorch_cuda`,
    args: [
      "--constraints",
      `${WORKERS}/vllm_cuda.txt`,
      ...NEEDS.flatMap((name) => ["--no-emit-package", name]),
    ],
  },
];

const COMMON = [
  "--universal",
  "--generate-hashes",
  "--python-version",
  `3.${PYTHON_MINOR_MIN}`,
  "--quiet",
];

/** Arguments of `uv pip compile`. */
export function lockArguments({ path, args }: { path: string; args: string[] }): string[] {
  const output = [
    "--custom-compile-command",
    "deno task lock",
    "--output-file",
    `${path}.txt`,
    `${path}.in`,
  ];
  return [...COMMON, ...args, ...output];
}

if (import.meta.main) {
  Deno.chdir(ROOT);
  const [dir, python] = [environmentsDir(), await basePython()];
  await makeEnvironmentsDir(dir);
  const creation = new Creation(placeOf(dir, { name: "lock", text: "", python: python.build }), {
    onProgress: ({ text }) => console.error(text),
  });
  const uv = await Uv.of(dir, { python, creation });
  for (const lock of LOCKS) await uv.compile(lockArguments(lock), creation);
}
