import { parseDocument } from "yaml";
import { isFields } from "../short_forms.ts";
import type { Path } from "./schema_walk.ts";

/** `a.b=c` of the command line: the value is YAML, list entries are named by their index. */
export type Override = { text: string; path: Path; value: unknown };
type OverrideProblem = { text: string; message: string };

/**
 * Splits `a.b=c`. Any other text is a problem, not a throw, so that all problems are reported
 * together.
 */
export function parseOverride(text: string): Override | OverrideProblem {
  const equals = text.indexOf("=");
  if (equals < 1) return { text, message: "an override is written PATH=VALUE, e.g. seed=2" };
  const steps = text.slice(0, equals).trim().split(".");
  if (steps.some((step) => step === "")) {
    return { text, message: "a path is names with single dots between them, e.g. trainer.ranks" };
  }
  const document = parseDocument(text.slice(equals + 1), { prettyErrors: false });
  if (document.errors.length > 0) {
    return { text, message: `the value is not YAML: ${document.errors[0]!.message}` };
  }
  return { text, path: steps.map(stepOf), value: document.toJS() };
}

/** The steps of a path as people write it, `reward.0.timeout_ms`. */
export function stepsOf(path: string): Path {
  return path.split(".").map(stepOf);
}

function stepOf(step: string): string | number {
  return /^\d+$/.test(step) ? Number(step) : step;
}

/** The value with one override; creates missing blocks. Never changes its argument. */
export function setAt(value: unknown, { path, to }: { path: Path; to: unknown }): unknown {
  if (path.length === 0) return to;
  const [step, ...rest] = path;
  const list = typeof step === "number" ? value ?? [] : value;
  if (Array.isArray(list)) {
    if (typeof step !== "number" || step > list.length) {
      throw new RangeError(
        `there is no entry '${step}' in a list of ${list.length}; the next is ${list.length}`,
      );
    }
    const copy = [...list];
    copy[step] = setAt(list[step], { path: rest, to });
    return copy;
  }
  if (value !== undefined && value !== null && !isFields(value)) {
    throw new RangeError(
      `cannot set '${step}' inside ${JSON.stringify(value)}, which is not a block`,
    );
  }
  const fields = (value ?? {}) as Record<string, unknown>;
  return { ...fields, [String(step)]: setAt(fields[String(step)], { path: rest, to }) };
}

/**
 * A value with overrides, for configurations that only their own graph can check. @throws
 * {RangeError} At the first that cannot be set.
 */
export function overridden(value: unknown, overrides: readonly string[]): unknown {
  return overrides.map(parseOverride).reduce((so_far, override) => {
    if ("message" in override) {
      throw new RangeError(`Cannot use '${override.text}': ${override.message}`);
    }
    return setAt(so_far, { path: override.path, to: override.value });
  }, value);
}
