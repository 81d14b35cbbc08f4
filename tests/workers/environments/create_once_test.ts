import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { basename, dirname } from "node:path";
import { namesIn } from "../../../workers/environments/files_on_disk.ts";
import {
  createOnce,
  distrust,
  factsOf,
  packagesOf,
  placeOf,
} from "../../../workers/environments/create_once.ts";
import { gate, PYTHON, withHome } from "../fixtures.ts";

const of = (dir: string, python = PYTHON) => placeOf(dir, { name: "torch", text: "", python });

/** Makes a place as an installation would, and counts how often. */
function maker() {
  const events: string[] = [];
  const make = async (path: string) => {
    events.push("made");
    await Deno.mkdir(`${path}/bin`, { recursive: true });
    await Deno.writeTextFile(`${path}/bin/python`, "");
  };
  const check = () => Promise.resolve({ packages: { tiny: "1.0" }, missing: [] as string[] });
  return { events, options: { make, check, onWait: () => void events.push("waits") } };
}

Deno.test("placeOf() has another directory for another name, text or Python", () => {
  const named = (changed: Partial<Parameters<typeof placeOf>[1]>) =>
    placeOf("/h", { name: "torch", text: "a", python: PYTHON, ...changed }).path;
  match(named({}), /^\/h\/torch-cpython3\.11-[0-9a-f]{12}$/);
  strictEqual(named({}), named({ python: { ...PYTHON, version: "3.11.9" } }), "of equal files");
  const others = [
    { text: "b" },
    { name: "vllm" },
    { python: { ...PYTHON, tag: "cpython3.12" } },
    { python: { ...PYTHON, tag: "pypy3.11" } },
    { python: { ...PYTHON, platform: "linux-aarch64" } },
    { python: { ...PYTHON, base: "/opt/python" } },
  ];
  strictEqual(new Set([{}, ...others].map(named)).size, 1 + others.length);
});

Deno.test("createOnce() makes a place on first use and gives its interpreter", () =>
  withHome(async (home) => {
    const place = of(home);
    const { events, options } = maker();
    for (const _ of [1, 2]) {
      strictEqual(await createOnce(place, options), `${place.path}/bin/python`);
    }
    deepStrictEqual(events, ["made"]);
    const { name, python } = (await factsOf(place.path))!;
    deepStrictEqual([name, python], ["torch", PYTHON]);
  }));

Deno.test("createOnce() lets a second maker wait for the first", () =>
  withHome(async (home) => {
    const place = of(home);
    const { events, options } = maker();
    const [started, finish] = [gate(), gate()];
    const first = createOnce(place, {
      ...options,
      make: async (path) => {
        started.open();
        await finish.opened;
        await options.make(path);
      },
    });
    await started.opened;
    const waits = gate();
    const second = createOnce(place, { ...options, onWait: () => waits.open() });
    await waits.opened;
    finish.open();
    deepStrictEqual([await first, events], [await second, ["made"]]);
  }));

Deno.test("createOnce() names a complete place; what a killed maker left goes", () =>
  withHome(async (home) => {
    const place = of(home);
    const { events, options } = maker();
    const half = async (path: string) => {
      await Deno.mkdir(path);
      await Deno.writeTextFile(`${path}/half`, "");
      throw new Error("the network went");
    };
    await rejects(createOnce(place, { ...options, make: half }), /the network went/);
    await rejects(Deno.stat(place.path), Deno.errors.NotFound);
    strictEqual(await factsOf(place.path), null);
    const unfinished = namesIn(home).find((name) => name.endsWith(".making"))!;
    strictEqual(unfinished.replace(/\.[0-9a-f]{8}\.making$/, ""), basename(place.path));
    await createOnce(place, {
      ...options,
      make: (path) => {
        notStrictEqual(basename(path), unfinished, "its processes may still write there");
        return options.make(path);
      },
    });
    deepStrictEqual(namesIn(home).sort(), [
      basename(place.path),
      `${basename(place.path)}.lock`,
    ]);
    await rejects(Deno.stat(`${place.path}/half`), Deno.errors.NotFound);
    deepStrictEqual(events, ["made"]);
  }));

Deno.test("createOnce() makes a place again whose interpreter is gone, or its Python", () =>
  withHome(async (home) => {
    const place = of(home);
    const { events, options } = maker();
    const python = await createOnce(place, options);
    await Deno.remove(dirname(python), { recursive: true });
    await createOnce(place, options);
    await Deno.remove(python);
    await Deno.symlink(`${home}/no_such_python`, python);
    await createOnce(place, options);
    deepStrictEqual(events, ["made", "made", "made"]);
  }));

Deno.test("createOnce() remembers when a place was last asked for", () =>
  withHome(async (home) => {
    const { options } = maker();
    const place = of(home);
    await createOnce(place, options);
    await Deno.utime(`${place.path}/holdfast.json`, 0, 0);
    strictEqual((await factsOf(place.path))!.used_at.getTime(), 0);
    await createOnce(place, options);
    ok((await factsOf(place.path))!.used_at.getTime() > 0);
  }));

Deno.test("createOnce() works in a linked directory with spaces, and makes it private", () =>
  withHome(async (home) => {
    const { events, options } = maker();
    const dir = `${home}/a cache/env`;
    await createOnce(of(dir), options);
    strictEqual((await Deno.stat(dir)).mode! & 0o777, 0o700);
    await Deno.symlink(dir, `${home}/link`);
    const linked = of(`${home}/link`);
    strictEqual(await createOnce(linked, options), `${linked.path}/bin/python`);
    await Deno.remove(`${linked.path}/bin`, { recursive: true });
    await createOnce(linked, options);
    deepStrictEqual(events, ["made", "made"]);
  }));

Deno.test("createOnce() says which variable names a directory that can be written", () =>
  withHome(async (home) => {
    await Deno.writeTextFile(`${home}/file`, "");
    const { options } = maker();
    await rejects(
      createOnce(of(`${home}/file/env`), options),
      /^InvalidInputError: Cannot use '.*\/file\/env' for Python .*Fix: set HOLDFAST_ENV_DIR to/,
    );
  }));

Deno.test("createOnce() refuses an installation that lacks something, and names it", () =>
  withHome(async (home) => {
    const place = of(home);
    const { options } = maker();
    const missing = ["sympy 1.14.0", "websockets/__init__.py of websockets"];
    await rejects(
      createOnce(place, { ...options, check: () => Promise.resolve({ packages: {}, missing }) }),
      /'torch' because the installation is incomplete: it lacks sympy 1\.14\.0; websockets\/__init/,
    );
    strictEqual(await factsOf(place.path), null);
  }));

Deno.test("createOnce() checks a place once, and makes a damaged one again", () =>
  withHome(async (home) => {
    const place = of(home);
    const { events, options } = maker();
    let checks = 0;
    let missing = [] as string[];
    const check = () => {
      checks++;
      return Promise.resolve({ packages: { tiny: "1.0" }, missing });
    };
    const use = () => createOnce(place, { ...options, check });
    for (const _ of [1, 2]) await use();
    deepStrictEqual([checks, packagesOf(place.path)], [1, { tiny: "1.0" }]);
    await distrust(place.path);
    await use();
    deepStrictEqual([checks, events], [2, ["made"]]);
    await distrust(place.path);
    missing = ["tiny.py of tiny"];
    await rejects(use(), /incomplete/); // What it makes lacks it, too.
    missing = [];
    await use();
    deepStrictEqual(events, ["made", "made", "made"]);
  }));

Deno.test("createOnce() stops waiting for another maker when asked", () =>
  withHome(async (home) => {
    const place = of(home);
    const { options } = maker();
    const [started, finish, waits] = [gate(), gate(), gate()];
    const first = createOnce(place, {
      ...options,
      make: async (path) => {
        started.open();
        await finish.opened;
        await options.make(path);
      },
    });
    await started.opened;
    const stop = new AbortController();
    const { signal } = stop;
    const second = createOnce(place, { ...options, signal, onWait: () => waits.open() });
    await waits.opened;
    stop.abort(new Error("Ctrl-C"));
    await rejects(second, /Ctrl-C/);
    finish.open();
    await first;
  }));
