/**
 * What a verb of the command line is. A file of `verbs/` declares one with `defineVerb`;
 * `verbs/table.ts` lists them all.
 */
import type { GlobalOptions } from "./global_options.ts";

/** An option of a verb. Its name is its field: `dry_run` is `--dry-run`. */
export type VerbOption<T> = {
  help: string;
  /** What it takes, as help shows it: `<n>`. A flag takes nothing. */
  takes?: string;
  /** One letter: `-n`. */
  short?: string;
  required?: boolean;
  default?: T;
  /** Reads what was given for `option`. `before`: what an earlier one of the line gave. */
  read?(text: string, option: string, before: T | undefined): T;
};

type Arguments = Readonly<Record<string, string>>;
type Options = Readonly<Record<string, VerbOption<unknown>>>;

type NameOf<Usage> = Usage extends `<${infer Name}...>` | `[${infer Name}...]` ? Name
  : Usage extends `<${infer Name}>` | `[${infer Name}]` ? Name
  : never;
type ValueOf<Usage> = Usage extends `${string}...${string}` ? string[]
  : Usage extends `[${string}` ? string | undefined
  : string;

/** What a verb is called with. */
export type Call<A extends Arguments, O extends Options> = {
  args: { [Usage in keyof A as NameOf<Usage>]: ValueOf<Usage> };
  flags: { [Name in keyof O]: O[Name] extends VerbOption<infer T> ? T : never };
  globals: GlobalOptions;
};

type Declared<A extends Arguments, O extends Options> = {
  /** As it is typed. Two words: the second is a verb of a group, which the table describes. */
  name: string;
  /** What it does, for `--help`. */
  about: string;
  /** What each argument is, by its usage: `<must>`, `[may]` or `[several...]`. */
  arguments: A;
  /** In the order of `--help`. */
  options: O;
  /** It reads no home: it has neither `--home` nor `--store`. */
  homeless?: true;
  /** Does it. Returns the exit code; nothing: 0. */
  action(call: Call<A, O>): Promise<number | void> | void;
};

export type Verb = Declared<Arguments, Options>;

/** A verb. Its arguments and options have types in its action. */
export function defineVerb<const A extends Arguments, O extends Options>(
  verb: Declared<A, O>,
): Verb {
  return verb as unknown as Verb;
}
