import type { LoadedConfig } from "../../../configs/mod.ts";
import { InvalidInputError, readDerivedJson } from "../../../engine/mod.ts";
import { droppedTable, PreparedCard } from "../../../flows/mod.ts";
import { EXIT } from "../../exit.ts";
import { json } from "../../options.ts";
import { print, printJson, table } from "../../display/output.ts";
import { startFile, STARTS } from "../../start_run.ts";
import { defineVerb } from "../../verb.ts";

/** `data prepare CONFIG`: what `run` does, for the prepare flow alone; then it prints the card. */
export const dataPrepareVerb = defineVerb({
  name: "data prepare",
  about: "write files of rows as Parquet: mapped, without duplicates, split, counted",
  ...STARTS,
  options: { ...STARTS.options, json },
  async action({ args, flags, globals }) {
    let output = "";
    const code = await startFile({ args, flags, globals }, (loaded) => {
      output = outputOf(loaded);
    });
    const card = PreparedCard.safeParse(readDerivedJson(`${output}/card.json`));
    // A run that is queued, stopped or failed has no card.
    if (code !== EXIT.done || !card.success) return code;
    if (flags.json) printJson(card.data);
    else print(cardText(card.data, output));
    return code;
  },
});

function outputOf({ file, config }: LoadedConfig): string {
  if (config.flow === "prepare") return config.output;
  const { flow } = config;
  throw new InvalidInputError(
    `Cannot prepare data with ${file} because its flow is '${flow}': set flow: prepare, or use ` +
      "'run'",
    { flow },
  );
}

function cardText(card: PreparedCard, output: string): string {
  const { header, lines } = droppedTable(card);
  const rows = card.splits.map((
    { split, file, rows },
  ) => [split, String(rows), `${output}/${file}`]);
  const sets = card.evaluation_sets.map(({ name, problems, rows_dropped }) => [
    name,
    String(problems),
    String(rows_dropped),
  ]);
  return [
    table(header, lines),
    ...(sets.length > 0 ? ["", table(["evaluation set", "problems", "rows dropped"], sets)] : []),
    "",
    table(["split", "rows", "file"], rows),
  ].join("\n");
}
