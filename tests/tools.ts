/**
 * The programs that tests start and that a machine may lack. `deno run -A tests/tools.ts` prints
 * the packages of those that the gate misses, for a package manager.
 */

/**
 * Present if any of these is there: a command on PATH, or an absolute path, in which a part may be
 * `*`.
 */
type Tool = { name: string; package: string; any: string[] };

/** What the gate needs. */
export const TOOLS: readonly Tool[] = [
  { name: "initdb", package: "postgresql", any: ["/usr/lib/postgresql/*/bin/initdb", "pg_config"] },
  { name: "openssl", package: "openssl", any: ["openssl"] },
  { name: "ps", package: "procps", any: ["ps"] },
  { name: "ss", package: "iproute2", any: ["ss"] },
];

/** What the long suites need besides. */
export const LONG_TOOLS: readonly Tool[] = [
  { name: "faketime", package: "faketime", any: ["/usr/lib/*/faketime/libfaketimeMT.so.1"] },
  { name: "ip", package: "iproute2", any: ["ip"] },
  { name: "nft", package: "nftables", any: ["nft"] },
];

/** Tools that are not there. `path`: the directories of commands. */
export function missingTools(tools = TOOLS, path = Deno.env.get("PATH") ?? ""): Tool[] {
  const places = (one: string) =>
    one.startsWith("/") ? [one] : path.split(":").map((dir) => `${dir}/${one}`);
  return tools.filter(({ any }) => !any.flatMap(places).some(isThere));
}

/** One line that names them and how to install them; null if none is missing. */
export function missingLine(missing: readonly Tool[]): string | null {
  if (missing.length === 0) return null;
  const names = missing.map(({ name }) => name).join(", ");
  return `Tests that need ${names} will be left out, or fail. Install them: apt-get install ${
    packages(missing)
  }`;
}

function packages(tools: readonly Tool[]): string {
  return [...new Set(tools.map((tool) => tool.package))].join(" ");
}

function isThere(path: string): boolean {
  const [before, ...after] = path.split("/*/");
  if (after.length > 0) {
    return names(before!).some((name) => isThere(`${before}/${name}/${after.join("/*/")}`));
  }
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // Whatever stands in the way, it cannot be started.
  }
}

function names(dir: string): string[] {
  try {
    return [...Deno.readDirSync(dir)].map(({ name }) => name);
  } catch {
    return [];
  }
}

if (import.meta.main) console.log(packages(missingTools()));
