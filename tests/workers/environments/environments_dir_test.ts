import { strictEqual, throws } from "node:assert/strict";
import { environmentsDir } from "../../../workers/mod.ts";

const dirOf = (variables: Record<string, string>) =>
  environmentsDir({ get: (name) => variables[name] });

Deno.test("environmentsDir() is HOLDFAST_ENV_DIR, or else in the user's cache", () => {
  const all = { HOLDFAST_ENV_DIR: "/disk/my envs/", XDG_CACHE_HOME: "/cache", HOME: "/home/me" };
  strictEqual(dirOf(all), "/disk/my envs");
  strictEqual(dirOf({ ...all, HOLDFAST_ENV_DIR: "" }), "/cache/holdfast/env");
  for (const XDG_CACHE_HOME of ["", "relative"]) {
    strictEqual(dirOf({ XDG_CACHE_HOME, HOME: "/home/me" }), "/home/me/.cache/holdfast/env");
  }
  strictEqual(dirOf({ HOLDFAST_ENV_DIR: "/disk" }), "/disk");
});

Deno.test("environmentsDir() refuses a relative directory and a missing HOME, with a fix", () => {
  const refused: [Record<string, string>, RegExp][] = [
    [
      { HOLDFAST_ENV_DIR: "envs", HOME: "/home/me" },
      /^Cannot .* because HOLDFAST_ENV_DIR is 'envs', which is not an absolute path\. Fix: /,
    ],
    [{}, /^Cannot .* because HOME is not set\. Fix: set HOLDFAST_ENV_DIR to /],
    [{ HOME: "" }, /because HOME is not set\./],
    [{ HOME: "." }, /because HOME is '\.', which is not an absolute path\. Fix: set HOLDFAST_ENV/],
  ];
  for (const [variables, message] of refused) {
    throws(() => dirOf(variables), { name: "InvalidInputError", message });
  }
});
