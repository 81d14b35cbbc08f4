import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  clipSettings,
  profileOf,
  profilesOf,
  termSettings,
  traceAlgorithm,
} from "../../algs/mod.ts";
import { algorithmPage, algorithmPageUrl, listPage } from "../../docs/generate/algorithm_pages.ts";
import { GAIN_MIN } from "../../bench/learning.ts";
import { learningTable, seedResult } from "../../bench/learning_docs.ts";
import { parsePage } from "./markdown.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SECTIONS = [
  "Run it",
  "The file",
  "Settings",
  "Differences from the paper",
  "Peers",
  "Profiles",
  "Metrics",
];
/**
 * The last section of a page whose algorithm has recorded curves: one that was just added has none
 * yet.
 */
const MEASURED = "Measured";

const NAMES = Object.keys(ALGORITHMS);
const pageOf = (name: string): string => Deno.readTextFileSync(algorithmPageUrl(name));
const PARTS = pageOf("parts");
const CURVES = [...Deno.readDirSync(`${ROOT}docs/learning`)].map(({ name }) =>
  name.replace(/\.json$/, "")
).toSorted();

/** The lines of a page between a heading of the second level and the next one. */
function section(page: string, heading: string): string[] {
  const lines = page.split("\n");
  const from = lines.indexOf(`## ${heading}`) + 1;
  ok(from > 0, `there is no section '${heading}'`);
  const rest = lines.slice(from);
  const end = rest.findIndex((line) => line.startsWith("## "));
  return rest.slice(0, end < 0 ? undefined : end);
}

/** The rows of the first table among lines, without its head: trimmed cells. */
function rows(lines: readonly string[]): string[][] {
  const from = lines.findIndex((line) => line.startsWith("|"));
  const table = lines.slice(from);
  const end = table.findIndex((line) => !line.startsWith("|"));
  return table.slice(2, end < 0 ? undefined : end).map((line) =>
    line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, ""))
  );
}

const codes = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);

/** A value as a table writes it: a name stands without quotes. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Settings and defaults of a table whose first cells name some and whose second ones give as many
 * values.
 */
function settingsIn(lines: readonly string[]): Record<string, unknown> {
  const entries = rows(lines).flatMap(([names = "", values = ""]) => {
    const [all, defaults] = [codes(names), values.split(", ")];
    strictEqual(
      all.length,
      defaults.length,
      `${names} has ${all.length} names and ${defaults.length} values`,
    );
    return all.map((name, i): [string, unknown] => [name, valueOf(defaults[i]!)]);
  });
  strictEqual(
    new Set(entries.map(([name]) => name)).size,
    entries.length,
    "a setting stands twice",
  );
  return Object.fromEntries(entries);
}

/**
 * Most learn a task of digits on a model that is made on the spot; supervised fine-tuning needs a
 * model and rows.
 */
function configPath(name: string): string {
  return name === "sft" ? "configs/sft.yaml" : `configs/algorithms/${name}.yaml`;
}

for (const [name, algorithm] of Object.entries(ALGORITHMS) as [string, AnyAlgorithm][]) {
  Deno.test(`${name} has a configuration, and a page that runs it`, () => {
    const { algorithm: chosen } = parse(Deno.readTextFileSync(`${ROOT}${configPath(name)}`));
    strictEqual(typeof chosen === "string" ? chosen : chosen.name, name);
    const shells = parsePage(pageOf(name)).blocks.filter(({ lang }) => lang === "sh");
    ok(shells.some(({ text }) => text.startsWith(`deno task rl run ${configPath(name)}`)));
  });

  Deno.test(`${name}'s page has every section, and shows the file and the profiles as they are`, () => {
    const page = pageOf(name);
    const headings = [...page.matchAll(/^## (.+)$/gm)].map((match) => match[1]!);
    deepStrictEqual(headings, CURVES.includes(name) ? [...SECTIONS, MEASURED] : SECTIONS);
    const shown = parsePage(page).blocks.map(({ attributes }) => attributes.shows);
    deepStrictEqual(shown.filter((path) => path !== undefined), [`algs/${name}.ts`]);
    strictEqual(page, algorithmPage(name, page), "run deno task schema");
  });

  Deno.test(`${name}'s page names the commit, or the file of the release, that each profile was read from`, () => {
    const rows = section(pageOf(name), "Profiles");
    for (const profile of profilesOf(name)) {
      const { source } = profileOf(profile, name)!;
      const row = rows.find((line) => line.startsWith(`| \`${profile}\` |`)) ?? "";
      if ("commit" in source) {
        match(source.commit, /^[0-9a-f]{40}$/);
        ok(row.includes(`](${source.repository}/tree/${source.commit})`), `${profile}: ${row}`);
      } else {
        match(source.sha256, /^[0-9a-f]{64}$/);
        ok(row.includes(source.release) && row.includes(source.sha256), `${profile}: ${row}`);
      }
    }
  });

  Deno.test(`${name}'s page gives every setting with its default, and no other`, () => {
    const defaults = algorithm.config.parse({});
    if (Object.keys(defaults).length === 0) {
      return ok(!section(pageOf(name), "Settings").join("\n").includes("|"));
    }
    deepStrictEqual(settingsIn(section(pageOf(name), "Settings")), defaults);
  });

  Deno.test(`${name}'s page or the shared one names every metric of its loss`, () => {
    const configs = [{}, ...(algorithm.examples ?? [])];
    const names = configs.flatMap((config) => {
      const { loss, value_loss } = traceAlgorithm(algorithm, config);
      return [...Object.keys(loss.metrics), ...Object.keys(value_loss?.metrics ?? {})];
    });
    const metrics = [...section(pageOf(name), "Metrics"), ...section(PARTS, "Metrics")].join("\n");
    deepStrictEqual([...new Set(names)].filter((metric) => !metrics.includes(`\`${metric}\``)), []);
  });
}

Deno.test("the list of algorithms is as the code and the pages have it", () => {
  const page = pageOf("README");
  strictEqual(
    page,
    listPage(page, Object.fromEntries(NAMES.map((name) => [name, pageOf(name)]))),
    "run deno task schema",
  );
  const needs = Object.fromEntries(
    rows(section(page, "Which one")).map(([name, , , ...cells]) => [name, cells.slice(0, 4)]),
  );
  strictEqual(Object.keys(needs).length, NAMES.length);
  deepStrictEqual(needs["[`grpo`](grpo.md)"], ["rewards", "2", "if asked for", "no"]);
  deepStrictEqual(needs["[`ppo`](ppo.md)"], ["rewards", "1", "if asked for", "yes"]);
  deepStrictEqual(needs["[`rloo`](rloo.md)"], ["rewards", "2", "yes", "no"]);
  deepStrictEqual(needs["[`dpo`](dpo.md)"], ["pairs", "–", "yes", "no"]);
  deepStrictEqual(needs["[`kto`](kto.md)"], ["labelled rows or pairs", "–", "yes", "no"]);
  deepStrictEqual(needs["[`sft`](sft.md)"], ["rows", "–", "no", "no"]);
});

Deno.test("the page of shared parts names every setting of each", () => {
  const settings = {
    ...clipSettings({ low: 0, high: 0 }),
    ...termSettings({ aggregation: "token_mean" }),
  };
  const documented = PARTS.split("\n").filter((line) => line.startsWith("|")).flatMap((line) =>
    codes(line.split(" | ")[0]!)
  );
  deepStrictEqual(Object.keys(settings).filter((setting) => !documented.includes(setting)), []);
});

for (const name of CURVES) {
  Deno.test(`${name}'s page shows the curves of three seeds, which all learn`, async () => {
    const curve = `curves/${name}.svg`;
    ok(section(pageOf(name), MEASURED).some((line) => line.endsWith(`](${curve})`)));
    match(
      await Deno.readTextFile(`${ROOT}docs/algorithms/${curve}`),
      /^<svg [^]*seed 1[^]*seed 2[^]*seed 3/,
    );
    const { results, seeds } = JSON.parse(
      await Deno.readTextFile(`${ROOT}docs/learning/${name}.json`),
    );
    deepStrictEqual(Object.keys(seeds), ["1", "2", "3"]);
    for (const [seed, points] of Object.entries(seeds) as [string, [number, number, number][]][]) {
      const curve = points.map(([samples, seconds, value], i) => ({
        round: i + 1,
        samples,
        seconds,
        value,
      }));
      const { gain, ...rest } = results[seed];
      const found = seedResult(curve);
      ok(
        Math.abs(found.gain - gain) < 0.002 && gain >= GAIN_MIN,
        `seed ${seed}: ${gain}, ${found.gain} by its points`,
      );
      deepStrictEqual([rest.rounds, rest.seconds], [found.rounds, found.seconds]);
    }
  });
}

Deno.test("the table of learning is that of the recorded curves", async () => {
  const recorded = await Promise.all(
    CURVES.map(async (name) =>
      JSON.parse(await Deno.readTextFile(`${ROOT}docs/learning/${name}.json`))
    ),
  );
  ok(
    (await Deno.readTextFile(`${ROOT}docs/benchmarks.md`)).includes(
      `\n${learningTable(recorded)}\n`,
    ),
  );
});
