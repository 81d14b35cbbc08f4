import { match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { copyTree } from "../copy_tree.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

Deno.test("a package that deno.lock does not hold is refused, in a clone with the task's own settings", async () => {
  const clone = await Deno.makeTempDir({ prefix: "holdfast-lock-" });
  try {
    await copyTree(ROOT, `${clone}/`);
    const run = async (text: string) => {
      await Deno.writeTextFile(`${clone}/mine.ts`, text);
      const { code, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--quiet", "mine.ts"],
        cwd: clone,
      }).output();
      return { code, err: new TextDecoder().decode(stderr) };
    };
    strictEqual((await run(`import "zod";\n`)).code, 0);
    // A version of what is there already, so that nothing but the lock stands in its way.
    const refused = await run(`import "npm:zod@4.6.6";\n`);
    ok(refused.code !== 0);
    match(refused.err, /lockfile is out of date/i);
  } finally {
    await Deno.remove(clone, { recursive: true });
  }
});
