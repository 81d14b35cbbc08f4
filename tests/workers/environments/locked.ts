/** What locked requirements hold, and what of them has compiled code. */
import { ok } from "node:assert/strict";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** `marker`: where it is for some platforms or Pythons alone; empty: for all. */
type Entry = { name: string; version: string; marker: string; hashes: number };

/** The requirements of a locked file, each with the number of its hashes. */
export async function entries(path: string): Promise<Entry[]> {
  const text = await Deno.readTextFile(`${ROOT}${path}.txt`);
  const whole = text.replaceAll("\\\n", " ").split("\n").filter((line) =>
    line !== "" && !/^\s*#/.test(line)
  );
  return whole.map((line) => {
    const [, name, version, rest] = /^([\w.-]+)==([\w.+]+)(.*)$/.exec(line) ?? [];
    ok(name && version, `${path}.txt: '${line}' is no exact version`);
    const [marker, ...hashes] = rest!.split(/--hash=sha256:[0-9a-f]{64}\b/);
    return { name, version, marker: marker!.replace(/^\s*;/, "").trim(), hashes: hashes.length };
  });
}

/**
 * Names of packages with compiled code in the environments of these interpreters, each with the tag
 * of its file there.
 */
export function compiledFor(pythons: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const python of pythons) {
    const lib = `${dirname(dirname(python))}/lib`;
    const versions = [...Deno.readDirSync(lib)].filter(({ name }) => name.startsWith("python"));
    for (const packages of versions.map(({ name }) => `${lib}/${name}/site-packages`)) {
      for (const { name: entry } of Deno.readDirSync(packages)) {
        const tag = entry.endsWith(".dist-info") ? tagOf(`${packages}/${entry}/WHEEL`) : null;
        if (tag === null || tag.endsWith("-any")) continue;
        found.set(entry.split("-")[0]!.replaceAll(/[-_.]+/g, "-").toLowerCase(), tag);
      }
    }
  }
  return found;
}

/** The first tag of an installed wheel; null: it was not installed from one. */
function tagOf(path: string): string | null {
  try {
    return /^Tag: (.*)$/m.exec(Deno.readTextFileSync(path))?.[1] ?? null;
  } catch {
    return null;
  }
}
