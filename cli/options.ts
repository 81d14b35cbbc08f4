/** Kinds of options, and options that several verbs have. */
import { didYouMean } from "../configs/mod.ts";
import { BadDataError, checkRunId } from "../engine/mod.ts";
import type { VerbOption } from "./verb.ts";

/** `--dry-run`: there or not. */
export function flag(help: string): VerbOption<boolean | undefined> {
  return { help };
}

type TextOptions<D> = { short?: string; default?: D };

/** `--status done`. */
export function text<D extends string | undefined = undefined>(
  takes: string,
  help: string,
  options: TextOptions<D> = {},
): VerbOption<string | D> {
  return { takes, help, ...options };
}

/** An option that the verb cannot do without. */
export function required(takes: string, help: string): VerbOption<string> {
  return { takes, help, required: true };
}

/** An option that may be given several times. */
export function list(takes: string, help: string): VerbOption<string[] | undefined> {
  return { takes, help, read: (text, _, before = []) => [...before, text] };
}

type WholeOptions<D> = TextOptions<D> & { least?: number };

/** `--lines 20`: a whole number, of at least 1 if `least` does not say otherwise. */
export function whole<D extends number | undefined = undefined>(
  takes: string,
  help: string,
  { least = 1, ...options }: WholeOptions<D> = {},
): VerbOption<number | D> {
  return { takes, help, read: (text, name) => wholeNumber(text, { name, least }), ...options };
}

/** One of some names. */
export function choice<const N extends string>(
  names: readonly N[],
  help: string,
): VerbOption<N | undefined> {
  return {
    takes: `<${names.join("|")}>`,
    help,
    read(text, option) {
      const named = names.find((name) => name === text);
      if (named !== undefined) return named;
      throw new BadDataError(
        `Cannot use '${text}' for ${option}${didYouMean(text, names)}: give one of ${
          names.join(", ")
        }`,
        { option },
      );
    },
  };
}

/** For a verb with output for programs. */
export const json = flag("print JSON");

/** For a verb that creates a run. */
export const id: VerbOption<string | undefined> = {
  takes: "<id>",
  help: "id of the new run (default: generated)",
  read: (text) => checkRunId(text),
};

/** Reads a text of the command line as a whole number of at least `least`. */
export function wholeNumber(
  text: string,
  { name, least }: { name: string; least: number },
): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new BadDataError(
    `Cannot use '${text}' for ${name}: give a whole number of at least ${least}`,
    { name },
  );
}
