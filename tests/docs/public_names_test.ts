import { deepStrictEqual, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MOD = fileURLToPath(new URL("../../mod.ts", import.meta.url));
/** zod's own, re-exported: it has pages of its own. */
const OTHERS = ["z"];

type PublicName = { name: string; declarations: { jsDoc?: { doc?: string } }[] };

Deno.test("every public name says what it is", async () => {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["doc", "--json", MOD], stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout)) as {
    nodes: Record<string, { symbols: PublicName[] }>;
  };
  const symbols = Object.values(nodes).flatMap((file) => file.symbols);
  ok(symbols.length > 100, `only ${symbols.length} public names were found`);
  const silent = symbols.filter(({ declarations }) => !declarations.some(({ jsDoc }) => jsDoc?.doc?.trim()))
    .map(({ name }) => name);
  deepStrictEqual(silent, OTHERS);
});
