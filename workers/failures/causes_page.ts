import { type Action, type FailureKind, POLICY, type Policy, SIGNS, TEXTLESS } from "./causes.ts";

/** What an action means for the owner of the run. */
const ACTION_TEXTS: Record<Action, string> = {
  restart: "a new generation, up to 3 times for the same failure",
  confirm: "a new generation, once; a repeat ends the run with the evidence",
  exclude_device:
    "a new generation on a spare GPU; without one the run ends and names the broken one",
  replan: "a new generation; then half the micro-batch, recorded as a replan",
  stop: "the stage fails immediately",
};

const signsOf = (kind: FailureKind): string[] => [
  ...SIGNS.filter((sign) => sign.kind === kind).map(({ name }) => name),
  ...Object.entries(TEXTLESS).filter(([, of]) => of === kind).map(([name]) => name),
];

/**
 * The table of docs/failures.md: every kind of failure, the signs that it is read from, and what is
 * done.
 */
export function causesTable(): string {
  const rows = (Object.entries(POLICY) as [FailureKind, Policy][]).map(
    ([kind, { cause, action, counted, means }]) => {
      const done = counted
        ? ACTION_TEXTS[action]
        : `${ACTION_TEXTS.restart.split(",")[0]}; costs no budget`;
      return [
        `\`${kind}\``,
        means,
        signsOf(kind).map((name) => `\`${name}\``).join(" "),
        `\`${cause}\``,
        done,
      ];
    },
  );
  const lines = [
    ["kind", "what it is", "signs", "budget", "what follows"],
    ["---", "---", "---", "---", "---"],
    ...rows,
  ];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

export const FAILURES_PAGE_URL = new URL("../../docs/failures.md", import.meta.url);

/** The page with the code's current table. */
export function causesPage(page: string): string {
  const table = /^\| kind \|(.*\n)*?(?=\n|$(?![^]))/m;
  return page.replace(table, () => `${causesTable()}\n`);
}
