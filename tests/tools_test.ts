import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { LONG_TOOLS, missingLine, missingTools, TOOLS } from "./tools.ts";

const ALL = [...TOOLS, ...LONG_TOOLS];

Deno.test("a machine without the tests' tools gets one line that names each, and how to install them", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-tools-" });
  try {
    const tools = ALL.map((tool) => ({
      ...tool,
      any: tool.any.map((one) => one.replace(/^\//, `${dir}/`)),
    }));
    const missing = missingTools(tools, `${dir}/bin`);
    deepStrictEqual(missing.map(({ name }) => name), ALL.map(({ name }) => name));
    const line = missingLine(missing)!;
    ok(
      ALL.every((tool) =>
        line.includes(tool.name) && line.split("apt-get install ")[1]!.includes(tool.package)
      ),
      line,
    );
    strictEqual(line.split("\n").length, 1);
    strictEqual(line.split("iproute2").length, 2, "each package once");

    for (const { any } of tools) {
      const path = any[0]!.startsWith("/") ? any[0]!.replace("*", "x86") : `${dir}/bin/${any[0]}`;
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(path, "");
    }
    deepStrictEqual(missingTools(tools, `/nowhere:${dir}/bin`), []);
    strictEqual(missingLine([]), null);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("CI installs what the list has", async () => {
  match(
    await Deno.readTextFile(new URL("../.ci/run", import.meta.url)),
    /missing="\$\(npx -y deno@2 run -A --quiet tests\/tools\.ts\)"/,
  );
});
