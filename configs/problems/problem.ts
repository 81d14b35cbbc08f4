import type { Position } from "../yaml_file.ts";

/** One problem with its place: `file:line:col`, or `override a.b`. */
export type ConfigProblem = {
  where: string;
  path: string;
  message: string;
  position: Position | null;
};

/**
 * A configuration that cannot be used. Its message has every problem, one a line, in the file's
 * order.
 */
export class ConfigError extends Error {
  /** As an engine's error has it. */
  readonly code = "bad_config";
  /** Never: the file must change. */
  readonly retryable = false;
  /** All of them, in the file's order. */
  readonly problems: readonly ConfigProblem[];

  /** In the file's order. */
  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(problemLine).join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }

  /** For programs: JSON output. */
  toJSON(): Record<string, unknown> {
    return {
      code: this.code,
      retryable: this.retryable,
      message: this.message,
      facts: { problems: this.problems },
    };
  }
}

/** `file:line:col path: message`. */
function problemLine({ where, path, message }: ConfigProblem): string {
  return path === "" || where === `override ${path}`
    ? `${where}: ${message}`
    : `${where} ${path}: ${message}`;
}
