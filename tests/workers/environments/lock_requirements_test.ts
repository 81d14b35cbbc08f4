import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { lockArguments, LOCKS } from "../../../workers/environments/lock_requirements.ts";
import {
  PYTHON_MINOR_MAX,
  PYTHON_MINOR_MIN,
} from "../../../workers/environments/python_interpreter.ts";
import { compiledFor, entries } from "./locked.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const WORKERS = "workers/python/requirements";
const PATHS = [...LOCKS.map(({ path }) => path), `${WORKERS}/pytorch_cpu`];

/** The exact versions that an `.in` file asks for, with those of the files that it includes. */
async function requiredPins(path: string): Promise<string[]> {
  const text = await Deno.readTextFile(`${ROOT}${path}`);
  const included = [...text.matchAll(/^-r (\S+)$/gm)].map(([, file]) =>
    new URL(file!, `file:///${path}`).pathname.slice(1)
  );
  const pins = [...text.matchAll(/^([\w.-]+==[\w.+]+)/gm)].map(([, pin]) => pin!.toLowerCase());
  return [...pins, ...(await Promise.all(included.map(requiredPins))).flat()];
}

for (const path of PATHS) {
  Deno.test(`${path}.txt locks each requirement by version and hashes, with no index`, async () => {
    const locked = await entries(path);
    ok(locked.length > 0);
    deepStrictEqual(locked.filter(({ hashes }) => hashes === 0), []);
    const text = await Deno.readTextFile(`${ROOT}${path}.txt`);
    ok(!/:\/\/|^\s*(-i|-f|--(extra-)?index|--find-links)/m.test(text), "it names a place");
  });
}

for (const { path } of LOCKS) {
  Deno.test(`${path}.txt has what ${path}.in asks for`, async () => {
    const pins = (await entries(path)).map(({ name, version }) =>
      `${name}==${version}`.toLowerCase()
    );
    deepStrictEqual((await requiredPins(`${path}.in`)).filter((pin) => !pins.includes(pin)), []);
  });
}

Deno.test("every file of requirements is locked, and no other lies there", () => {
  for (const dir of [WORKERS, "tests/requirements"]) {
    const names = [...Deno.readDirSync(`${ROOT}${dir}`)].map(({ name }) => `${dir}/${name}`).filter(
      (name) => name.endsWith(".txt"),
    );
    const known = [...PATHS.map((path) => `${path}.txt`), `${WORKERS}/not_locked.txt`];
    deepStrictEqual(names.filter((name) => !known.includes(name)), []);
  }
});

Deno.test("every environment has one torch, and its two builds are one version", async () => {
  const torch = async (path: string) =>
    (await entries(path)).filter(({ name }) => name === "torch").map(({ version }) =>
      version.replace(/\+.*/, "")
    );
  const [version] = await torch(`${WORKERS}/pytorch_cuda`);
  ok(version);
  deepStrictEqual(await torch(`${WORKERS}/pytorch_cpu`), [version, version]);
  deepStrictEqual(await torch(`${WORKERS}/vllm_cuda`), [version]);
  const apart = (await Deno.readTextFile(`${ROOT}${WORKERS}/not_locked.txt`)).split("\n").filter((
    line,
  ) => /^\w/.test(line));
  strictEqual(apart[0], "torch");
  for (const path of ["torch", "deepspeed", "vllm_cpu"]) {
    const names = (await entries(`${WORKERS}/${path}`)).map(({ name }) => name);
    deepStrictEqual(apart.filter((name) => names.includes(name)), []);
  }
});

/**
 * Platforms that environments are made on, and what a marker says of a package that is not for one.
 */
const PLATFORMS = [
  { name: "Linux, x86-64", excluded: /sys_platform == 'darwin'/ },
  { name: "Linux, aarch64", excluded: /sys_platform == 'darwin'|platform_machine == 'x86_64'/ },
  { name: "macOS", excluded: /sys_platform == 'linux'/ },
];
const PYTHONS = PYTHON_MINOR_MAX - PYTHON_MINOR_MIN + 1;
/** Packages with fewer files, and how many those are. */
// One for each machine: its tag names a Python, but any takes it.
const FEWER: Record<string, number> = { "vllm-cpu": 2 };

/** How many files a package with compiled code needs. `tag`: of one of them. */
function filesFor({ name, marker }: { name: string; marker: string }, tag: string): number {
  const clauses = marker.split(" and ").filter((clause) => !clause.includes(" or "));
  const platforms = PLATFORMS.filter(({ excluded }) =>
    !clauses.some((clause) => excluded.test(clause))
  );
  return FEWER[name] ?? platforms.length * (/^cp(\d+)-cp\1-/.test(tag) ? PYTHONS : 1);
}

Deno.test("every lock has each compiled package for each platform and Python", async () => {
  const pythons = [
    "HOLDFAST_TEST_PYTHON",
    "HOLDFAST_TEST_DEEPSPEED_PYTHON",
    "HOLDFAST_TEST_VLLM_PYTHON",
  ];
  const named = [...pythons, "HOLDFAST_TEST_TRL_PYTHON"].flatMap((name) =>
    Deno.env.get(name) ?? []
  );
  const compiled = compiledFor(named);
  // No environment of a test has it.
  for (const tool of ["uv", "ruff"]) compiled.set(tool, "py3-none-linux_x86_64");
  for (const path of PATHS) {
    const known = (await entries(path)).filter(({ name }) => compiled.has(name));
    deepStrictEqual(
      known.filter((entry) => entry.hashes < filesFor(entry, compiled.get(entry.name)!)),
      [],
      path,
    );
    if (named.length > 0) ok(known.length > 0, path);
  }
});

Deno.test("a lock is for all platforms and Pythons; what is for one alone has a marker", async () => {
  for (const lock of LOCKS) {
    const words = lockArguments(lock);
    for (const word of ["--universal", "--generate-hashes"]) {
      ok(words.includes(word), `${lock.path}: ${word}`);
    }
    strictEqual(words.some((word) => /^--python-platform/.test(word)), false);
    const locked = await entries(lock.path);
    const universal = /sys_platform|platform_machine|python_full_version/;
    if (locked.length > 1) {
      ok(
        locked.some(({ marker }) => universal.test(marker)),
        `${lock.path} has no marker: it is of one platform and one Python`,
      );
    }
  }
});
