import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Without `--no-npm` Deno takes the types of packages for ours (docs/decisions/0034-public-names.md). */
async function lint(file: string): Promise<{ code: number; text: string }> {
  const args = ["doc", "--lint", "--no-npm", file];
  const options = { args, cwd: ROOT, env: { NO_COLOR: "1" }, stdout: "piped", stderr: "piped" } as const;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), options).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

Deno.test("every public name, and every member of a class or interface, has a text, a type, and types that are public too", async () => {
  const { code, text } = await lint("mod.ts");
  strictEqual(code, 0, text);
});

Deno.test("what has no text, no type or a private type is found", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-names-" });
  try {
    const file = `${dir}/mod.ts`;
    await Deno.writeTextFile(file, "type Hidden = 1;\nexport function silent(x: Hidden) {\n  return x;\n}\n");
    const { code, text } = await lint(file);
    strictEqual(code, 1);
    for (const rule of ["missing-jsdoc", "missing-return-type", "private-type-ref"]) match(text, RegExp(rule));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("no public name is marked internal", async () => {
  const args = ["doc", "--json", "--no-npm", `${ROOT}mod.ts`];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout)) as { nodes: Record<string, { symbols: Named[] }> };
  const names = Object.values(nodes).flatMap(({ symbols }) => symbols);
  ok(names.length > 100, `only ${names.length} public names were found`);
  const isInternal = ({ declarations }: Named) =>
    declarations.some(({ jsDoc }) => jsDoc?.tags?.some(({ kind }) => kind === "internal"));
  deepStrictEqual(names.filter(isInternal).map(({ name }) => name), []);
});

type Named = { name: string; declarations: { jsDoc?: { tags?: { kind: string }[] } }[] };
