/** The entry points of the package, as `deno.json` lists them, and the names that each exports. */
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const EXPORT = /export \{([^}]*)\} from "[^"]+";/g;

/** File of each entry point by what a script writes: `holdfast`, `holdfast/engine`, ... */
export function entryPoints(): Record<string, string> {
  const { name, exports } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.json`)) as {
    name: string;
    exports: Record<string, string>;
  };
  const written = (entry: string) => entry === "." ? name : `${name}/${entry.slice(2)}`;
  return Object.fromEntries(
    Object.entries(exports).map(([entry, file]) => [written(entry), file.slice(2)]),
  );
}

/** What an entry point's file lists, in its order, and the code in it that is no such list. */
export function readEntryPoint(file: string): { names: string[]; rest: string } {
  const code = Deno.readTextFileSync(ROOT + file).replaceAll(/\/\*[^]*?\*\/|^ *\/\/.*/gm, "");
  const listed = [...code.matchAll(EXPORT)].flatMap(([, names]) => names!.split(","));
  const names = listed.map((name) => name.trim().replace(/^type /, "").split(" as ").at(-1)!)
    .filter(Boolean);
  return { names, rest: code.replaceAll(EXPORT, "").trim() };
}
