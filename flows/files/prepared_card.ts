/** What a preparation says of its data: `card.json`, and the same for people in `README.md`. */
import { relative } from "node:path";
import { z } from "zod";
import { DROP_REASONS, Dropped, DroppedRow } from "./prepared_part.ts";

const Counts = z.strictObject({ read: z.int(), written: z.int(), dropped: Dropped });

const /** @internal */ preparedCardSchema = z.strictObject({
  format: z.literal("holdfast prepared data 1"),
  name: z.string(),
  rows: Counts,
  splits: z.array(z.strictObject({
    split: z.string(),
    file: z.string(),
    rows: z.int(),
    bytes: z.int(),
    sha256: z.string(),
    texts_as_messages: z.int().positive().optional().describe(
      "Rows whose text prompt is written as a user's message; absent: none.",
    ),
  })),
  inputs: z.array(
    Counts.extend({ file: z.string(), bytes: z.int(), sha256: z.string() }),
  ),
  evaluation_sets: z.array(z.strictObject({
    name: z.string(),
    problems: z.int(),
    digest: z.string(),
    rows_dropped: z.int(),
  })),
  dropped_rows: z.array(DroppedRow).describe("The first of each input and reason."),
  recipe: z.record(z.string(), z.unknown()).describe(
    "The configuration; its paths start from the card's directory.",
  ),
});
/** The card of prepared data. Of every file and of all: read = written + dropped. */
export type PreparedCard = z.infer<typeof preparedCardSchema>;
/** Schema of {@linkcode PreparedCard}. */
export const PreparedCard: typeof preparedCardSchema = preparedCardSchema;

/** What the reasons mean, for the card's readers. */
const REASONS: Record<(typeof DROP_REASONS)[number], string> = {
  unreadable: "a broken line, or a row that lacks what it needs",
  mapped_to_nothing: "the mapping found nothing in it",
  duplicate: "an earlier row is the same",
  too_short: "shorter than a limit",
  too_long: "longer than a limit",
  contaminated: "shares words with an evaluation set",
};

/** The recipe with paths relative to the directory of the card: it may move with its inputs. */
export function relativeRecipe(
  recipe: Record<string, unknown>,
  dir: string,
): Record<string, unknown> {
  const shortened = (value: unknown, key = ""): unknown => {
    if (typeof value === "string" && ["path", "output", "python"].includes(key)) {
      return value.startsWith("/") ? relative(dir, value) || "." : value;
    }
    if (Array.isArray(value)) return value.map((one) => shortened(one));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1)
        .map(([name, one]) => [name, shortened(one, name)]),
    );
  };
  return shortened(recipe) as Record<string, unknown>;
}

/** Counts of files as lines of a table: the reasons that occur, in their order. */
export function droppedTable(
  { inputs, rows }: Pick<PreparedCard, "inputs" | "rows">,
): { header: string[]; lines: string[][] } {
  const reasons = DROP_REASONS.filter((reason) => rows.dropped[reason]);
  const line = (name: string, { read, written, dropped }: z.infer<typeof Counts>) => [
    name,
    String(read),
    String(written),
    ...reasons.map((reason) => String(dropped[reason] ?? 0)),
  ];
  return {
    header: ["file", "read", "written", ...reasons],
    lines: [
      ...inputs.map((input) => line(input.file, input)),
      ...(inputs.length > 1 ? [line("all", rows)] : []),
    ],
  };
}

/** The card as a page, with the head by which `datasets` finds the splits. */
export function cardPage(card: PreparedCard): string {
  const { name, splits, evaluation_sets, dropped_rows, rows } = card;
  const { header, lines } = droppedTable(card);
  const reasons = DROP_REASONS.filter((reason) => rows.dropped[reason]);
  return [
    "---",
    "configs:",
    "- config_name: default",
    "  data_files:",
    ...splits.flatMap(({ split, file }) => [`  - split: ${split}`, `    path: ${file}`]),
    "---",
    "",
    `# ${name}`,
    "",
    "Prepared by Holdfast. `card.json` has the same for programs, and the recipe.",
    "",
    markdownTable(["split", "file", "rows", "bytes", "sha256"], [
      ...splits.map((one) => [
        one.split,
        one.file,
        String(one.rows),
        String(one.bytes),
        one.sha256,
      ]),
    ]),
    ...splits.filter(({ texts_as_messages }) => texts_as_messages).flatMap((one) => [
      "",
      `\`${one.split}\`: ${one.texts_as_messages} prompts were texts. They are written as messages ` +
      "of the user, because other rows have messages.",
    ]),
    "",
    "## Rows read, written and dropped",
    "",
    markdownTable(header, lines),
    ...(reasons.length > 0 ? [""] : []),
    ...reasons.map((reason) => `- \`${reason}\`: ${REASONS[reason]}`),
    ...section("## Evaluation sets", evaluation_sets.length > 0, [
      markdownTable(["set", "problems", "rows dropped"], [
        ...evaluation_sets.map((set) => [
          set.name,
          String(set.problems),
          String(set.rows_dropped),
        ]),
      ]),
    ]),
    ...section("## Examples of dropped rows", dropped_rows.length > 0, [
      markdownTable(["file", "row", "reason", "because"], [
        ...dropped_rows.map((one) => [one.file, String(one.row), one.reason, one.because]),
      ]),
    ]),
    "",
  ].join("\n");
}

function section(title: string, has: boolean, lines: string[]): string[] {
  return has ? ["", title, "", ...lines] : [];
}

function markdownTable(header: readonly string[], rows: readonly string[][]): string {
  const cell = (text: string) => text.replace(/\s+/g, " ").replaceAll("|", "\\|");
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
