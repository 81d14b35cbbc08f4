/** What the arguments of verbs mean, by name. */
export const ARGUMENTS: Record<string, string> = {
  config: "a YAML file",
  overrides: "settings as a.b=c that override the file's or the run's",
  run: "the run's id",
  runs: "only these runs (default: all)",
  name: "the signal's name",
  value: "YAML: true, 3, text, {by: ada} (default: null)",
  text: "part of a run's id or name",
  a: "a run's id",
  b: "the run to compare it with",
  key: "a journal key, such as 'round/3/train_policy'",
  reward: "a reward's name, path.py:function, or a reward model's directory",
  algorithm: "a name, or the path of a Python file",
  settings: "the algorithm's settings as a=b",
  file: "rows: one JSON object per line",
};
