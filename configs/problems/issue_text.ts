import { z } from "zod";
import {
  bare,
  fieldPaths,
  optionsOf,
  type Path,
  schemaAt,
  valueAt,
} from "../settings/schema_walk.ts";
import { didYouMean, suggestKey } from "./suggest.ts";

/** One problem at one path. `key`: the key itself is wrong, not its value. */
export type Issue = { path: Path; message: string; key?: boolean };
type Checked = { schema: z.ZodType; value: unknown };

/** Of a key that nothing known resembles. */
export const UNKNOWN_KEY = "unknown key";

/** Zod's issues in our words: what is wrong, what is expected, what was probably intended. */
export function issuesOf(error: z.ZodError, checked: Checked): Issue[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path as Path;
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => unknownKey([...path, key], checked));
    }
    return [{ path, message: messageOf(issue, checked) }];
  });
}

function unknownKey(path: Path, { schema, value }: Checked): Issue {
  const block = schemaAt(schema, { path: path.slice(0, -1), value });
  const here = block instanceof z.ZodObject ? Object.keys(block.shape) : [];
  const whole = schemaAt(schema, { path: [], value });
  const everywhere = whole === undefined ? [] : fieldPaths(whole);
  const suggestion = suggestKey(String(path.at(-1)), {
    block: path.slice(0, -1).join("."),
    here,
    everywhere,
  });
  return { path, key: true, message: `${UNKNOWN_KEY}${suggestion}` };
}

/** Zod's text where a union's declaration has none. */
const UNSAID = "Invalid input";

function messageOf(issue: z.core.$ZodIssue, checked: Checked): string {
  const found = valueAt(checked.value, issue.path as Path);
  switch (issue.code) {
    case "invalid_type":
      return found === undefined
        ? `missing; expected ${typeName(issue.expected)}`
        : expected(typeName(issue.expected), found);
    case "invalid_value":
      return oneOf(issue.values.map(String), found);
    case "invalid_union":
      return unionText(issue, checked, found);
    case "too_small":
      return bound(issue, { limit: issue.minimum, word: "at least", strict: "more than" }, found);
    case "too_big":
      return bound(issue, { limit: issue.maximum, word: "at most", strict: "less than" }, found);
    default:
      return found === undefined ? issue.message : `${issue.message}, got ${show(found)}`;
  }
}

/** A discriminator's issue has a path that ends with the discriminator. */
function unionText(
  { path, message }: z.core.$ZodIssue,
  { schema, value }: Checked,
  found: unknown,
): string {
  const union = schemaAt(schema, { path: path.slice(0, -1) as Path, value });
  if (union instanceof z.ZodDiscriminatedUnion) {
    return oneOf([...optionsOf(bare(union) as z.ZodDiscriminatedUnion).keys()], found);
  }
  return `${message === UNSAID ? "invalid value" : `${message}, got`} ${show(found)}`;
}

export function oneOf(names: readonly string[], found: unknown): string {
  const wanted = names.length === 1 ? `${names[0]}` : `one of ${names.join(", ")}`;
  if (found === undefined) return `missing; expected ${wanted}`;
  return expected(wanted, found) + (typeof found === "string" ? didYouMean(found, names) : "");
}

function bound(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  { limit, word, strict }: { limit: number | bigint; word: string; strict: string },
  found: unknown,
): string {
  if (issue.origin === "array") {
    return `needs ${word} ${limit} ${limit === 1 ? "entry" : "entries"}, got ${
      (found as unknown[]).length
    }`;
  }
  if (issue.origin === "string") {
    return limit === 1 ? "must not be empty" : `must have ${word} ${limit} characters`;
  }
  return `must be ${issue.inclusive ? word : strict} ${limit}, got ${show(found)}`;
}

function expected(wanted: string, found: unknown): string {
  return `expected ${wanted}, got ${show(found)}`;
}

const TYPE_NAMES: Record<string, string> = {
  int: "a whole number",
  number: "a number",
  string: "text",
  boolean: "true or false",
  object: "a block of keys",
  record: "a block of keys",
  array: "a list",
  tuple: "a list",
};

function typeName(name: string): string {
  return TYPE_NAMES[name] ?? name;
}

function show(value: unknown): string {
  if (value === null) return "nothing (null)";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a block of keys";
  return typeof value === "string"
    ? JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
    : String(value);
}
