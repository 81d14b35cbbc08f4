import { deepStrictEqual, rejects } from "node:assert/strict";
import { InvalidInputError } from "../../../engine/mod.ts";
import {
  checkPython,
  describePython,
  findPython,
  PYTHON_MINOR_MAX,
  PYTHON_MINOR_MIN,
} from "../../../workers/mod.ts";
import { fakePython } from "./fake_python.ts";
import { withHome } from "../fixtures.ts";

Deno.test("findPython() names a Python that is too old, too new, broken or missing", () =>
  withHome(async (home) => {
    const sentence = (text: RegExp) => (error: Error) =>
      error instanceof InvalidInputError && text.test(error.message) &&
      !error.message.includes("\n");
    for (
      const version of [
        "2.7.18",
        "3.8.1",
        `3.${PYTHON_MINOR_MIN - 1}.13`,
        `3.${PYTHON_MINOR_MAX + 1}.0`,
        "4.0.0",
      ]
    ) {
      const unfit = await fakePython(home, `echo ${version} $0`);
      const says = new RegExp(
        `Python 3\\.11 to 3\\.14 is needed: '.*' is ${
          version.replaceAll(".", "\\.")
        }\\. Fix: install`,
      );
      await rejects(findPython(unfit), sentence(says));
    }
    for (const minor of [PYTHON_MINOR_MIN, PYTHON_MINOR_MAX]) {
      const fit = await fakePython(home, `echo 3.${minor}.2 $0`);
      deepStrictEqual(await findPython(fit), { path: fit, version: `3.${minor}.2` });
    }
    await rejects(
      findPython(await fakePython(home, "echo oops >&2; exit 1")),
      sentence(/'.*' does not run/),
    );
    await rejects(findPython("/no/such/python"), sentence(/'\/no\/such\/python' does not run/));
    const { path, version } = await findPython();
    deepStrictEqual(await describePython(path), { path, version });
  }));

Deno.test("checkPython() names the modules that are missing", async () => {
  const { path } = await findPython();
  await checkPython(path, ["json", "sqlite3"]);
  await rejects(
    checkPython(path, ["json", "no_such_module_a", "no_such_module_b"]),
    (error: Error) =>
      error instanceof InvalidInputError &&
      error.message.includes("lacks no_such_module_a, no_such_module_b"),
  );
  await rejects(checkPython("/no/such/python", ["json"]), /because it does not run/);
  await withHome(async (home) => {
    const old = await fakePython(home, "echo 3.10.4 $0");
    await rejects(
      checkPython(old, []),
      /because Python 3\.11 or newer is required: it is 3\.10\.4/,
    );
  });
});
