/** Phrases that a native engineer would not write, each with the words to use instead. */
type Banned = { pattern: RegExp; better: string; example: string };
export type Finding = { place: string; words: string; better: string };

export const BANNED: Banned[] = [
  { pattern: /\bmend(s|ed|ing)?\b/i, better: "fix", example: "mends the cause" },
  {
    pattern: /\bgo(es|ing|ne)? on\b/i,
    better: "resumes, continues",
    example: "goes on with the run",
  },
  {
    pattern: /\b(is|are|was|were|be) told\b/i,
    better: "receives, is reported",
    example: "is told at the start",
  },
  { pattern: /\bis another\b/i, better: "differs", example: "its hash is another" },
  {
    pattern: /\b(another|others?) than\b/i,
    better: "different from",
    example: "is another than before",
  },
  {
    pattern: /\bof (one's|its|their|your|our) own\b/i,
    better: "custom, separate",
    example: "a file of one's own",
  },
  { pattern: /\bin the air\b/i, better: "in flight", example: "what is in the air" },
  { pattern: /\bin one go\b/i, better: "together", example: "done in one go" },
  { pattern: /\bto the bit\b/i, better: "bit for bit, bit-identical", example: "equal to the bit" },
  { pattern: /\banew\b/i, better: "again", example: "written anew" },
  {
    pattern: /\b(has|have) not (what|the|a|an|any)\b/i,
    better: "lacks",
    example: "the machine has not what it needs",
  },
  {
    pattern: /\bon the spot\b/i,
    better: "created at the start, generated",
    example: "made on the spot",
  },
  {
    pattern: /\bwhoever\b/i,
    better: "the process that, anyone who",
    example: "whoever ends a run",
  },
  {
    pattern: /\bthe (one|engine|start|version) before\b/i,
    better: "the previous one",
    example: "the engine before left",
  },
  {
    pattern: /\b(lies|lie) (in|at|on|beside|whole|there)\b/i,
    better: "is in",
    example: "it lies in the home",
  },
  {
    pattern: /\bstands? (in|at|on|beside|there)\b/i,
    better: "is in",
    example: "it stands in the file",
  },
  { pattern: /\bfor good\b/i, better: "permanently", example: "gone for good" },
  { pattern: /\bfor ever\b/i, better: "forever", example: "waits for ever" },
  { pattern: /\bbegun\b/i, better: "started", example: "was begun here" },
  { pattern: /\ball the same\b/i, better: "still", example: "redone all the same" },
  { pattern: /\bfor so long\b/i, better: "for this long", example: "silent for so long" },
  {
    pattern: /\b(stops?|stopped|ends?|fails?|failed) at once\b/i,
    better: "immediately",
    example: "stops at once",
  },
  {
    pattern: /\bwhat becomes? of\b|\bwhat became of\b/i,
    better: "what happens to",
    example: "what became of it",
  },
  {
    pattern: /\bheld against\b/i,
    better: "compared with, checked against",
    example: "held against its hash",
  },
  { pattern: /\bput (it|them|the \S+) back\b/i, better: "restore", example: "put the file back" },
  {
    pattern: /\b(gives?|given) back\b/i,
    better: "releases, returns",
    example: "given back to the queue",
  },
  { pattern: /\b(takes?|taken) away\b/i, better: "reclaims, removes", example: "is taken away" },
  {
    pattern:
      /\bCannot [^:]*? as (it|its|there|no|the (run|disk|file|server|row|rows|loss|model))\b/i,
    better: "because",
    example: "Cannot read it as there is none",
  },
  { pattern: /\bmakes none\b/i, better: "does not create one", example: "it makes none" },
  {
    pattern: /\bis meant to\b|\bis it meant\b|\bis this meant\b/i,
    better: "should, is intended",
    example: "is meant to run",
  },
  {
    pattern: /\b(is|are) no part of\b/i,
    better: "is not part of",
    example: "it is no part of the record",
  },
  {
    pattern: /\bsays? nothing of\b/i,
    better: "does not mention",
    example: "the record says nothing of it",
  },
  {
    pattern: /\bwhich there (is|are)\b/i,
    better: "which exist",
    example: "it says which there are",
  },
  {
    pattern: /\b(takes?|took) the place of\b/i,
    better: "replaces",
    example: "it takes the place of the old file",
  },
  {
    pattern: /\bif (it|one|the \w+) is none\b/i,
    better: "is not one",
    example: "null if the text is none",
  },
  { pattern: /\bof no use\b/i, better: "useless", example: "it is of no use" },
  { pattern: /\bin silence\b/i, better: "silently", example: "dropped in silence" },
  {
    pattern: /\b(fails?|failed) of\b/i,
    better: "fails because of",
    example: "what a run failed of",
  },
  { pattern: /\bby turns\b/i, better: "in turn", example: "packed and padded by turns" },
  {
    pattern: /\bhand(s|ed|ing)? (it |them |groups |the \w+ )?on\b/i,
    better: "passes on",
    example: "a round hands groups on",
  },
  { pattern: /\bbut for\b/i, better: "except for", example: "all fields but for one" },
  { pattern: /\breads only:/i, better: "only reads", example: "Reads only: safe to run twice" },
  {
    pattern: /\bwhose (they|it) (are|is)\b/i,
    better: "which run owns them",
    example: "the file says whose they are",
  },
  {
    pattern: /\bnot there yet\b/i,
    better: "not supported yet, missing",
    example: "float16 is not there yet",
  },
  { pattern: /\bthat which\b/i, better: "what", example: "it keeps that which is needed" },
  { pattern: /\bso that there (be|is|are)\b/i, better: "so", example: "so that there be room" },
  { pattern: /\bat hand\b/i, better: "available, loaded", example: "the model is at hand" },
  { pattern: /\bwithout a word\b/i, better: "silently", example: "it is skipped without a word" },
  {
    pattern: /\b(is|are) no (fork|list|draw|failure|error|directory|number|fact)\b/i,
    better: "is not a",
    example: "the run is no fork",
  },
  { pattern: /\bwritten short\b/i, better: "short form", example: "written short: gsm8k" },
  { pattern: /\bout of sight\b/i, better: "cannot be observed", example: "an owner out of sight" },
  {
    pattern: /\b(begins?|began) with\b/i,
    better: "starts with",
    example: "a fork begins with rows",
  },
];

/** The banned phrases of a text, which may break lines. */
export function findings(place: string, text: string): Finding[] {
  const flat = text.replaceAll(/\s+/g, " ");
  return BANNED.flatMap(({ pattern, better }) =>
    [...flat.matchAll(new RegExp(pattern, "gi"))].map(({ index, 0: match }) => ({
      place,
      words: flat.slice(Math.max(0, index - 30), index + match.length + 30).trim(),
      better,
    }))
  );
}

/**
 * A page without code, comments, links' targets and addresses: what a reader reads as sentences.
 */
export function prose(page: string): string {
  return page
    .replaceAll(/^```[^]*?^```$/gm, "")
    .replaceAll(/<!--[^]*?-->/g, "")
    .replaceAll(/^ {4}.*$/gm, "")
    .replaceAll(/`[^`]*`/g, "CODE")
    .replaceAll(/\]\([^)]*\)/g, "]");
}

/** The sentences of a TypeScript source's comments, without code in them. */
export function comments(source: string): string {
  const blocks = source.matchAll(/^\s*\/\*\*?[^]*?\*\/|^\s*\/\/.*$|\s\/\/ .*$/gm);
  const lines = [...blocks].flatMap(([block]) => block.split("\n"));
  return prose(lines.map((line) => line.replace(/^\s*(\/\*\*?|\*\/|\*|\/\/) ?/, "")).join("\n"));
}

/** The sentences of a Python source's docstrings and comments, without code in them. */
export function pythonComments(source: string): string {
  const texts = source.matchAll(/"""([^]*?)"""|(?:^|\s)# (.*)$/gm);
  return prose([...texts].map(([, docstring, comment]) => docstring ?? comment).join("\n"));
}

/** The texts in quotes of a TypeScript or Python source, without its comments and docstrings. */
export function literals(source: string): string[] {
  const code = source
    .replaceAll(/"""[^]*?"""/g, '""')
    .replaceAll(/^\s*(\/\/|#|\/?\*).*$/gm, "")
    .replaceAll(/\s\/\/ .*$/gm, "")
    .replaceAll(/\$\{[^{}]*\}/g, "VALUE");
  return [...code.matchAll(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'/g)].map((
    [text],
  ) => text.slice(1, -1));
}
