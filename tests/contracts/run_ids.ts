/**
 * Ids that no run may have: each of a kind that a path, a shell or a person could take for
 * something else.
 */
export const BAD_IDS = [
  "",
  ".",
  "..",
  "../..",
  "a/b",
  "a\\b",
  "/a",
  ".hidden",
  "-rf",
  "_a",
  " a",
  "a ",
  "a b",
  "a\n",
  "ä",
  "a:b",
  "ａ",
  "~",
  "$HOME",
  "a".repeat(129),
];
