import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { LOCKS } from "../../workers/lock_requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WORKERS = "workers/python/requirements";
const PATHS = [...LOCKS.map(({ path }) => path), `${WORKERS}/pytorch_cpu`];

type Entry = { name: string; version: string; hashes: number };

/** The requirements of a locked file, each with the number of its hashes. */
async function entries(path: string): Promise<Entry[]> {
  const text = await Deno.readTextFile(`${ROOT}${path}.txt`);
  const whole = text.replaceAll("\\\n", " ").split("\n").filter((line) => line !== "" && !/^\s*#/.test(line));
  return whole.map((line) => {
    const [, name, version, rest] = /^([\w.-]+)==([\w.+]+)(.*)$/.exec(line) ?? [];
    ok(name && version, `${path}.txt: '${line}' is no exact version`);
    return { name, version, hashes: rest!.split(/--hash=sha256:[0-9a-f]{64}\b/).length - 1 };
  });
}

/** The exact versions that an `.in` file asks for, with those of the files that it includes. */
async function asked(path: string): Promise<string[]> {
  const text = await Deno.readTextFile(`${ROOT}${path}`);
  const included = [...text.matchAll(/^-r (\S+)$/gm)].map(([, file]) =>
    new URL(file!, `file:///${path}`).pathname.slice(1)
  );
  const own = [...text.matchAll(/^([\w.-]+==[\w.+]+)/gm)].map(([, pin]) => pin!.toLowerCase());
  return [...own, ...(await Promise.all(included.map(asked))).flat()];
}

for (const path of PATHS) {
  Deno.test(`${path}.txt locks every requirement by version and hashes, and names no index`, async () => {
    const locked = await entries(path);
    ok(locked.length > 0);
    deepStrictEqual(locked.filter(({ hashes }) => hashes === 0), []);
    const text = await Deno.readTextFile(`${ROOT}${path}.txt`);
    ok(!/:\/\/|^\s*(-i|-f|--(extra-)?index|--find-links)/m.test(text), "it names a place");
  });
}

for (const { path } of LOCKS) {
  Deno.test(`${path}.txt has what ${path}.in asks for`, async () => {
    const pins = (await entries(path)).map(({ name, version }) => `${name}==${version}`.toLowerCase());
    deepStrictEqual((await asked(`${path}.in`)).filter((pin) => !pins.includes(pin)), []);
  });
}

Deno.test("every file of requirements is locked, and no other lies there", () => {
  for (const dir of [WORKERS, "tests/requirements"]) {
    const names = [...Deno.readDirSync(`${ROOT}${dir}`)].map(({ name }) => `${dir}/${name}`).filter((name) =>
      name.endsWith(".txt")
    );
    const known = [...PATHS.map((path) => `${path}.txt`), `${WORKERS}/not_locked.txt`];
    deepStrictEqual(names.filter((name) => !known.includes(name)), []);
  }
});

Deno.test("every environment has one torch, and its two builds are one version", async () => {
  const torch = async (path: string) =>
    (await entries(path)).filter(({ name }) => name === "torch").map(({ version }) => version.replace(/\+.*/, ""));
  const [version] = await torch(`${WORKERS}/pytorch_cuda`);
  ok(version);
  deepStrictEqual(await torch(`${WORKERS}/pytorch_cpu`), [version, version]);
  deepStrictEqual(await torch(`${WORKERS}/vllm_cuda`), [version]);
  const apart = (await Deno.readTextFile(`${ROOT}${WORKERS}/not_locked.txt`)).split("\n").filter((line) =>
    /^\w/.test(line)
  );
  strictEqual(apart[0], "torch");
  for (const path of ["torch", "deepspeed", "vllm_cpu"]) {
    const names = (await entries(`${WORKERS}/${path}`)).map(({ name }) => name);
    deepStrictEqual(apart.filter((name) => names.includes(name)), []);
  }
});
