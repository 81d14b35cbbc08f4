/** What the docs test reads of a page: its code blocks, headings and links. */
import { createHash } from "node:crypto";

/**
 * A fenced block. Attributes stand after the language: `exit=137`, `file=a.ts` (is written there),
 * `shows=a.ts` (is that file of the repository, and not run), `merge=configs/a.yaml`, `output`,
 * `ran` (needs what the commands before it made).
 */
export type Block = {
  lang: string;
  attributes: Record<string, string>;
  text: string;
  line: number;
};
type Link = { target: string; line: number };
export type Page = { blocks: Block[]; anchors: Set<string>; links: Link[] };

export function parsePage(text: string): Page {
  const page: Page = { blocks: [], anchors: new Set(), links: [] };
  let open: Block | null = null;
  for (const [i, line] of text.split("\n").entries()) {
    if (open) {
      if (line.startsWith("```")) open = null;
      else open.text += `${line}\n`;
    } else if (line.startsWith("```")) {
      open = blockOf(line.slice(3), i + 1);
      page.blocks.push(open);
    } else {
      const heading = /^#{1,6} (.+)$/.exec(line);
      if (heading) page.anchors.add(anchorOf(heading[1]!));
      const outsideCode = line.replaceAll(/`[^`]*`/g, "");
      for (const match of outsideCode.matchAll(/\]\(([^)\s]+)\)/g)) {
        page.links.push({ target: match[1]!, line: i + 1 });
      }
    }
  }
  if (open) throw new SyntaxError(`The block that begins at line ${open.line} has no end`);
  return page;
}

function blockOf(info: string, line: number): Block {
  const [lang = "", ...rest] = info.trim().split(/\s+/);
  const pairs = rest.map((attribute): [string, string] => {
    const [name, value = ""] = attribute.split("=");
    return [name!, value];
  });
  return { lang, attributes: Object.fromEntries(pairs), text: "", line };
}

/** As GitHub names the anchor of a heading. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").trim().replaceAll(" ", "-");
}

/**
 * A text in which numbers, hashes and durations all look alike: what may differ between two runs of
 * one command.
 */
export function masked(text: string): string {
  return text
    .replaceAll(/\b[0-9a-f]{8,}\b/g, "#")
    .replaceAll(/-?\d+(\.\d+)?(e-?\d+)?/g, "#")
    .replaceAll(/(# (s|min|h|days)\b ?)+/g, "TIME ")
    .replaceAll(/[ \t]+/g, " ")
    .trim();
}

/**
 * A text without what differs between two equal runs: speeds, durations, hashes, what a recovery
 * redid. Every other number stays.
 */
export function timeless(text: string): string {
  return text
    .replaceAll(/\b[0-9a-f]{8,}\b/g, "#")
    .replaceAll(/\b\d+ tokens\/s/g, "# tokens/s")
    .replaceAll(/\b\d+ batches redone/g, "# batches redone")
    .replaceAll(/(\b\d+(\.\d+)? (s|min|h|days)\b ?)+/g, "TIME ")
    .replaceAll(/[ \t]+/g, " ")
    .trim();
}

/**
 * The processor on which the figures of the pages were computed: sha256 over what chooses the
 * kernels, its first digits.
 */
const FIGURES_PROCESSOR = "eae04f1298f6";

/**
 * Whether this machine computes the figures of the pages, bit by bit. Another processor adds in
 * another order and rounds otherwise, which a policy that samples soon shows.
 */
export function computesOurFigures(): boolean {
  if (Deno.build.os !== "linux") return false;
  const cpuinfo = Deno.readTextFileSync("/proc/cpuinfo");
  const known = ["vendor_id", "cpu family", "model", "flags"].map((field) =>
    new RegExp(`^${field}\\s*: (.*)$`, "m").exec(cpuinfo)?.[1]
  );
  return createHash("sha256").update(known.join("\n")).digest("hex").startsWith(FIGURES_PROCESSOR);
}

/**
 * The first line of `shown` that `output` lacks, in order; null if it has them all. `...` stands
 * for any lines.
 */
export function missingLine(
  shown: string,
  output: string,
  alike: (line: string) => string = masked,
): string | null {
  const lines = output.split("\n").map(alike);
  let from = 0;
  for (
    const line of shown.split("\n").filter((line) => line.trim() !== "" && line.trim() !== "...")
  ) {
    const at = lines.findIndex((candidate, i) => i >= from && candidate.includes(alike(line)));
    if (at < 0) return line;
    from = at + 1;
  }
  return null;
}
