/**
 * What the pages of docs/algorithms take from the code: files, each algorithm's profiles, and the
 * list of all. `deno task schema` writes them; a test fails if one is stale.
 */
import {
  type AlgorithmChoice,
  ALGORITHMS,
  type AnyAlgorithm,
  needsOf,
  ONLINE_ALGORITHMS,
  PREFERENCE_ALGORITHMS,
  profileOf,
  profilesOf,
} from "../../algs/mod.ts";

const FOLDER = new URL("../algorithms/", import.meta.url);
const ROOT = new URL("../../", import.meta.url);
const FILE = /^```(\w+) shows=(\S+)\n[^]*?^```$/gm;
const LIST = /^\| algorithm \|(.*\n)*?(?=\n)/m;
const PROFILES = /^<!-- Profiles: .*-->\n[^]*?(?=^## )/m;

export function algorithmPageUrl(name: string): URL {
  return new URL(`${name}.md`, FOLDER);
}

/** A page with the files of the repository that it shows as they are now. */
export function withFiles(page: string): string {
  return page.replace(
    FILE,
    (_, lang, path) =>
      `\`\`\`${lang} shows=${path}\n${Deno.readTextFileSync(new URL(path, ROOT))}\`\`\``,
  );
}

/** The page of an algorithm with its file and its profiles as they are now. */
export function algorithmPage(name: string, page: string): string {
  return withFiles(page).replace(
    PROFILES,
    () => `<!-- Profiles: written by \`deno task schema\`. -->\n\n${profilesText(name)}\n\n`,
  );
}

const HEAD = [
  "algorithm",
  "what it is",
  "source",
  "learns from",
  "samples a prompt",
  "reference model",
  "value model",
  "when",
];

/** The page of all algorithms with its list from the code and from their pages, by name. */
export function listPage(page: string, pages: Readonly<Record<string, string>>): string {
  const rows = Object.entries(pages).map(([name, text]) => listRow(name, text));
  const lines = [HEAD, HEAD.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return page.replace(LIST, () => `${lines.join("\n")}\n`);
}

/**
 * Lists what an algorithm needs with its default settings; its source is the first link of its
 * page.
 */
function listRow(name: string, page: string): string[] {
  const algorithm: AnyAlgorithm = ALGORITHMS[name as keyof typeof ALGORITHMS];
  const online = name in ONLINE_ALGORITHMS;
  const reads = needsOf({ name } as AlgorithmChoice, 1).includes("ref_logp");
  const [, when] = /^\*\*When:\*\* (.+)\.$/m.exec(page) ?? [];
  if (when === undefined) {
    throw new SyntaxError(`Cannot list '${name}' because its page has no line '**When:** ....'`);
  }
  return [
    `[\`${name}\`](${name}.md)`,
    (algorithm.about ?? "").replace(/\.$/, ""),
    /\[arXiv:[^\]]+\]\([^)]+\)/.exec(page)?.[0] ?? "–",
    learnsFrom(algorithm),
    online ? `${algorithm.group_min ?? 1}` : "–",
    reads ? "yes" : "kl_coef" in algorithm.config.shape ? "if asked for" : "no",
    algorithm.value_loss ? "yes" : "no",
    when,
  ];
}

function learnsFrom({ name, unpaired }: AnyAlgorithm): string {
  if (name in ONLINE_ALGORITHMS) return "rewards";
  if (unpaired !== undefined) return "labelled rows or pairs";
  return name in PREFERENCE_ALGORITHMS ? "pairs" : "rows";
}

function profilesText(algorithm: string): string {
  const profiles = profilesOf(algorithm).map((name) => ({ name, ...profileOf(name, algorithm)! }));
  if (profiles.length === 0) return "No framework with profiles has this algorithm.";
  const rows = profiles.map(({ name, about, source, settings }) => [
    `\`${name}\``,
    "commit" in source
      ? `[${about}](${source.repository}/tree/${source.commit})`
      : `${about}, sha256 \`${source.sha256}\``,
    settingsText(settings),
  ]);
  const table = [["profile", "of", "sets"], ["---", "---", "---"], ...rows].map((cells) =>
    `| ${cells.join(" | ")} |`
  );
  const ends = profiles.flatMap(({ name, ends }) =>
    ends.map((sentence) => `- \`${name}\`: ${sentence}`)
  );
  return [table.join("\n"), ...(ends.length === 0 ? [] : ["Equality ends here:", ends.join("\n")])]
    .join("\n\n");
}

function settingsText(settings: Readonly<Record<string, unknown>>): string {
  const all = Object.entries(settings).map(([name, value]) => `\`${name}: ${value}\``);
  return all.length === 0 ? "nothing" : all.join(", ");
}
