/**
 * First versions of what an algorithm has beside its file: a page, from the file's header and
 * settings, and a configuration. `deno task schema` writes those that are missing, and changes
 * none.
 */
import { ALGORITHMS, type AnyAlgorithm, traceAlgorithm } from "../../algs/mod.ts";
import { algorithmPageUrl } from "./algorithm_pages.ts";

const ROOT = new URL("../../", import.meta.url);

/** Writes the page and the configuration of each algorithm that lacks them. */
export async function writeMissing(): Promise<void> {
  const parts = await Deno.readTextFile(algorithmPageUrl("parts"));
  for (const algorithm of Object.values<AnyAlgorithm>(ALGORITHMS)) {
    const { name } = algorithm;
    const source = await Deno.readTextFile(new URL(`algs/${name}.ts`, ROOT));
    await writeIfMissing(algorithmPageUrl(name), () => pageStub(algorithm, { source, parts }));
    const like = templateOf(algorithm);
    if (like.endsWith(`/${name}.yaml`)) continue; // It is the template.
    const template = await Deno.readTextFile(new URL(like, ROOT));
    const url = new URL(`configs/algorithms/${name}.yaml`, ROOT);
    await writeIfMissing(url, () => configStub(algorithm, template));
  }
}

async function writeIfMissing(url: URL, text: () => string): Promise<void> {
  const there = await Deno.stat(url).catch(() => null);
  if (there === null) await Deno.writeTextFile(url, text());
}

/** The configuration of the algorithm that learns from the same as this one. */
export function templateOf(algorithm: AnyAlgorithm): string {
  if (algorithm.credit !== undefined) return "configs/algorithms/grpo.yaml";
  if (algorithm.head === "score") return "configs/algorithms/reward_model.yaml";
  if (algorithm.unpaired !== undefined) return "configs/algorithms/kto.yaml";
  const pairs = traceAlgorithm(algorithm, {}).loss.nodes.some(({ kind }) => kind === "pair");
  return pairs ? "configs/algorithms/dpo.yaml" : "configs/sft.yaml";
}

/** The configuration of an algorithm in `configs/algorithms`, made from that of one like it. */
export function configStub(algorithm: AnyAlgorithm, template: string): string {
  const { name, about = "", value_loss } = algorithm;
  const like = /^name: (\w+)$/m.exec(template)![1]!;
  const run = new RegExp(`^(# .*)configs/(?:algorithms/)?${like}\\.yaml$`);
  const fromRows = /^data:$/m.test(template);
  const [schema, _about, ...lines] = (fromRows ? oneFolderDeeper(template) : template).split("\n");
  const renamed = lines.map((line) =>
    line.replace(new RegExp(`^(name|algorithm): ${like}$`), `$1: ${name}`)
      .replace(run, `$1configs/algorithms/${name}.yaml`)
  );
  const place = renamed.indexOf(`algorithm: ${name}`) + 1;
  const valueModel = value_loss ? ["value_model: { optimizer: { lr: 2e-3 } }"] : [];
  return [
    schema,
    `# ${name}: ${about} ${
      fromRows ? `On the model and the rows of ${like}.yaml.` : "On a generated task, CPU only."
    }`,
    ...renamed.slice(0, place),
    ...valueModel,
    ...renamed.slice(place),
  ].join("\n");
}

/** A configuration whose relative paths are read from a folder within its own. */
function oneFolderDeeper(config: string): string {
  return config.replaceAll(
    /(\$schema=|: )(\.\.\/|\.\/)/g,
    (_, before, start) => `${before}${start === "./" ? "" : start}../`,
  );
}

/** What a page is made from: the algorithm's file, and the page of what algorithms share. */
type Sources = { source: string; parts: string };

/** The page of an algorithm: the header of its file in sections, its settings and its metrics. */
export function pageStub(algorithm: AnyAlgorithm, { source, parts }: Sources): string {
  const { name, about = "" } = algorithm;
  const { paragraphs, formulas, named } = headerOf(source);
  const opening = paragraphs.length === 0 ? [about] : paragraphs;
  const when = named.When ?? about.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase());
  return `${
    [
      `# ${name}`,
      ...opening,
      ...formulas.map((formula) => `\`\`\`text\n${formula}\n\`\`\``),
      `**When:** ${when.replace(/\.$/, "")}.`,
      "## Run it",
      `\`\`\`sh\ndeno task rl run configs/algorithms/${name}.yaml\n\`\`\``,
      "## The file",
      `\`\`\`ts shows=algs/${name}.ts\n\`\`\``,
      "## Settings",
      settingsTable(algorithm),
      "## Differences from the paper",
      named["Differences from the paper"] ?? "The file's header names none.",
      "## Peers",
      named.Peers ?? "The file's header names none.",
      "## Profiles",
      "<!-- Profiles: written by `deno task schema`. -->",
      "## Metrics",
      metricsText(algorithm, parts),
    ].join("\n\n")
  }\n`;
}

const SECTIONS = ["When", "Differences from the paper", "Peers"] as const;
type Header = {
  paragraphs: string[];
  formulas: string[];
  named: Partial<Record<(typeof SECTIONS)[number], string>>;
};

/** The paragraphs of the comment at the top of a file; a formula is indented. */
function headerOf(source: string): Header {
  const comment = /^\/\*\*\n([^]*?)^ \*\/$/m.exec(source)?.[1] ?? "";
  const paragraphs = comment.replaceAll(/^ \* ?/gm, "").trimEnd().split(/\n\n+/);
  const header: Header = { paragraphs: [], formulas: [], named: {} };
  for (const paragraph of paragraphs.filter((text) => text !== "")) {
    const section = SECTIONS.find((name) => paragraph.startsWith(`${name}:`));
    if (paragraph.startsWith("    ")) {
      header.formulas.push(paragraph.replaceAll(/^ {4}/gm, ""));
    } else if (section === undefined) header.paragraphs.push(linked(paragraph));
    else header.named[section] = linked(paragraph.slice(section.length + 1).trim());
  }
  return header;
}

function linked(text: string): string {
  return text.replaceAll(/arXiv:(\d+\.\d+)/g, "[arXiv:$1](https://arxiv.org/abs/$1)");
}

function settingsTable({ config }: AnyAlgorithm): string {
  const defaults = config.parse({}) as Record<string, unknown>;
  const rows = Object.entries(config.shape).map(([name, field]) => {
    const value = defaults[name];
    const written = typeof value === "string" ? value : JSON.stringify(value);
    return `| \`${name}\` | ${written} | ${(field as { description?: string }).description} |`;
  });
  if (rows.length === 0) return "It has none.";
  return ["| setting | default | what it is |", "| --- | --- | --- |", ...rows].join("\n");
}

function metricsText(algorithm: AnyAlgorithm, parts: string): string {
  const traced = [{}, ...(algorithm.examples ?? [])].flatMap((some) => {
    const { loss, value_loss } = traceAlgorithm(algorithm, some);
    return [...Object.keys(loss.metrics), ...Object.keys(value_loss?.metrics ?? {})];
  });
  const lossParts = [...new Set(traced)].map((name) => `\`${name}\``).filter((name) =>
    !parts.includes(name)
  );
  const shared = "[Those of all algorithms](parts.md#metrics).";
  return lossParts.length === 0 ? shared : `Of its loss: ${lossParts.join(", ")}. ${shared}`;
}
