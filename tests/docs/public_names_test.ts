import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { entryPoints } from "./entry_points.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = Object.values(entryPoints());

/**
 * Without `--no-npm` Deno takes the types of packages for ours
 * (docs/decisions/0034-public-names.md).
 */
async function lint(...files: string[]): Promise<{ code: number; text: string }> {
  const args = ["doc", "--lint", "--no-npm", ...files];
  const options = {
    args,
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  } as const;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), options).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

Deno.test("every public name, and every member of a class or interface, has a text, a type, and types that are public too", async () => {
  const { code, text } = await lint(...FILES);
  strictEqual(code, 0, text);
});

Deno.test("what has no text, no type or a private type is found", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-names-" });
  try {
    const file = `${dir}/mod.ts`;
    await Deno.writeTextFile(
      file,
      "type Hidden = 1;\nexport function silent(x: Hidden) {\n  return x;\n}\n",
    );
    const { code, text } = await lint(...FILES, file);
    strictEqual(code, 1);
    for (const rule of ["missing-jsdoc", "missing-return-type", "private-type-ref"]) {
      match(text, RegExp(rule));
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("no public name is marked internal", async () => {
  const names = (await Promise.all(FILES.map(documented))).flat();
  ok(names.length > 100, `only ${names.length} public names were found`);
  const isInternal = ({ declarations }: PublicName) =>
    declarations.some(({ jsDoc }) => jsDoc?.tags?.some(({ kind }) => kind === "internal"));
  deepStrictEqual(names.filter(isInternal).map(({ name }) => name), []);
});

async function documented(file: string): Promise<PublicName[]> {
  const args = ["doc", "--json", "--no-npm", ROOT + file];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout)) as {
    nodes: Record<string, { symbols: PublicName[] }>;
  };
  return Object.values(nodes).flatMap(({ symbols }) => symbols);
}

type PublicName = { name: string; declarations: { jsDoc?: { tags?: { kind: string }[] } }[] };
