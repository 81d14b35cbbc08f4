import type { RunView } from "../run_view.ts";

type Fields = Record<string, unknown>;

/** What a finished run has made and how, in Markdown: the last thing that its trackers receive. */
export function modelCard(view: RunView, config: Fields): string {
  const { policy, parent, ledger, evaluations, metrics } = view;
  const model = config.model as Fields | undefined;
  const algorithm = config.algorithm as Fields | undefined;
  const facts: [string, unknown][] = [
    ["Base model", model?.path ?? model?.recipe],
    ["Flow", config.flow],
    ["Algorithm", algorithm?.source ?? algorithm?.name],
    ["Rounds", view.loop === null ? undefined : view.round],
    ["Seed", config.seed],
    ["Parent", parent ? `${parent.run}, up to ${parent.loop}/${parent.round}` : undefined],
    ["Policy version", policy?.version],
    ["Digest of its weights", policy?.digest],
    ["Trained on", ledger.read > 0 ? `${ledger.trained} of ${ledger.read} draws` : undefined],
  ];
  const known = facts.filter(([, value]) => value !== undefined && value !== null);
  return [
    `# ${view.name}`,
    "",
    `Made by run \`${view.id}\` of Holdfast.`,
    "",
    ...known.map(([name, value]) => `- ${name}: ${value}`),
    ...section(
      "Evaluations",
      evaluations.map(({ name, ...summary }) => {
        const numbers = Object.entries(summary).filter(([, value]) => typeof value === "number");
        return `- ${name}: ${numbers.map((number) => number.join(" ")).join(", ")}`;
      }),
    ),
    ...section("Last metrics", Object.entries(metrics).map(([name, n]) => `- ${name}: ${n}`)),
    "",
  ].join("\n");
}

function section(title: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : ["", `## ${title}`, "", ...lines];
}
