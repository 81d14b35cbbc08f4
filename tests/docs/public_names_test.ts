import { deepStrictEqual, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MOD = fileURLToPath(new URL("../../mod.ts", import.meta.url));
/** zod's own, re-exported: it has pages of its own. */
const OTHERS = ["z"];

/** What `deno doc --json` says. */
type Documented = { jsDoc?: { doc?: string } };
type Member = Documented & { name: string; accessibility?: string };
type Definition = {
  properties?: Member[];
  methods?: Member[];
  /** The names of what a class extends and implements. */
  extends?: string | { repr: string }[];
  implements?: { repr: string }[];
};
type PublicName = { name: string; declarations: (Documented & { kind: string; def?: Definition })[] };

const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["doc", "--json", MOD], stderr: "null" }).output();
const { nodes } = JSON.parse(new TextDecoder().decode(stdout)) as { nodes: Record<string, { symbols: PublicName[] }> };
const symbols = Object.values(nodes).flatMap((file) => file.symbols);

const hasText = ({ jsDoc }: Documented) => jsDoc?.doc?.trim() !== undefined && jsDoc.doc.trim() !== "";

Deno.test("every public name says what it is", () => {
  ok(symbols.length > 100, `only ${symbols.length} public names were found`);
  const silent = symbols.filter(({ declarations }) => !declarations.some(hasText)).map(({ name }) => name);
  deepStrictEqual(silent, OTHERS);
});

function membersOf(name: string): Member[] {
  const definitions = symbols.find((symbol) => symbol.name === name)?.declarations.map(({ def }) => def) ?? [];
  return definitions.flatMap((def) => [...(def?.properties ?? []), ...(def?.methods ?? [])]);
}

/** What a class takes from elsewhere has its text there. */
function parentsOf({ declarations }: PublicName): string[] {
  return declarations.flatMap(({ def }) => {
    const parents = [...(typeof def?.extends === "string" ? [{ repr: def.extends }] : def?.extends ?? [])];
    return [...parents, ...(def?.implements ?? [])].map(({ repr }) => repr);
  });
}

Deno.test("every member of a public class or interface says what it is, where it is first named", () => {
  const silent = symbols.filter(({ name }) => !OTHERS.includes(name)).flatMap((symbol) => {
    const told = new Set(parentsOf(symbol).flatMap(membersOf).filter(hasText).map(({ name }) => name));
    const own = membersOf(symbol.name).filter(({ name, accessibility }) =>
      accessibility === undefined && !name.startsWith("[") && name !== "toJSON" && !told.has(name)
    );
    return own.filter((member) => !hasText(member)).map(({ name }) => `${symbol.name}.${name}`);
  });
  deepStrictEqual(silent, []);
});
