import { EngineError } from "../engine/mod.ts";
import { Home, homeDirectory } from "../runs/mod.ts";
import type { Command } from "./command.ts";
import { completed, DEFAULT_HOME, tell } from "./display/output.ts";

export const HOME_HELP = "directory of runs and checkpoints";
export const STORE_HELP =
  "PostgreSQL URL of the journal; overrides $HOLDFAST_STORE (default: a SQLite file in the home)";

type Options = { home?: string; store?: string; id?: string };

/** The options of all verbs, which may come before the verb or after it. */
export class GlobalOptions {
  /** The home's directory. */
  readonly home: string;
  readonly store: string | undefined;
  /** Of the new run. */
  readonly id: string | undefined;

  constructor(options: Options) {
    this.home = options.home ?? DEFAULT_HOME;
    homeDirectory(this.home); // Also for verbs that open no home.
    this.store = options.store ?? storeOfEnvironment();
    this.id = options.id;
  }

  /** Those that a command line gives: what comes after the verb counts. */
  static of(command: Command): GlobalOptions {
    return new GlobalOptions({ ...command.optsWithGlobals<Options>(), ...command.opts<Options>() });
  }

  /** Opens the home during `work`. An error's advice then names it. */
  async withHome<T>(work: (home: Home) => Promise<T>): Promise<T> {
    const home = Home.open(this.home, {
      store: this.store ?? null,
      onNotice: tell,
    });
    try {
      return await work(home);
    } catch (error) {
      if (error instanceof EngineError) error.message = completed(error.message, home);
      throw error;
    } finally {
      await home.close();
    }
  }
}

/** Keeps a password out of the list of processes. */
function storeOfEnvironment(): string | undefined {
  return Deno.env.get("HOLDFAST_STORE") || undefined;
}
