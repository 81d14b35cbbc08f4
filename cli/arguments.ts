/** What arguments mean that several verbs take. */
export const ARGUMENTS = {
  config: "a YAML file",
  overrides: "settings as a.b=c that override the file's or the run's",
  run: "the run's id",
  algorithm: "a name, or the path of a Python file",
  settings: "the algorithm's settings as a=b",
};
