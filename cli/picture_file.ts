import { dirname, resolve } from "node:path";
import { InvalidInputError } from "../engine/mod.ts";

/** A file that a command writes for people. It is whole, or it is not there. */
export class PictureFile {
  readonly path: string;
  readonly #force: boolean;

  /** `force`: replace a file that exists. */
  constructor(path: string, { force = false }: { force?: boolean } = {}) {
    this.path = resolve(path);
    this.#force = force;
    this.check();
  }

  /** Refuses a place where the file cannot or must not be. */
  check(): void {
    const { path } = this;
    const refused = (why: string) => new InvalidInputError(`Cannot write ${path} because ${why}`);
    const found = factsOf(path, Deno.lstatSync);
    if (found?.isDirectory) throw refused("it is a directory. Fix: name a file in it");
    if (found !== null && !this.#force) {
      throw refused("it exists. Fix: choose another name, or replace it with --force");
    }
    if (found === null && !factsOf(dirname(path), Deno.statSync)?.isDirectory) {
      throw refused(`its directory does not exist. Fix: mkdir -p ${dirname(path)}`);
    }
  }

  /** Writes it beside its place and then moves it there. */
  async write(content: string | Uint8Array): Promise<void> {
    const begun = `${this.path}.${crypto.randomUUID()}.new`;
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    try {
      await Deno.writeFile(begun, bytes, { createNew: true });
      this.check(); // Another command may have written it in the meantime.
      await Deno.rename(begun, this.path);
    } catch (error) {
      await Deno.remove(begun).catch(() => {}); // It may not be there.
      if (error instanceof InvalidInputError) throw error;
      throw new InvalidInputError(
        `Cannot write ${this.path} because ${(error as Error).message}`,
        {},
        { cause: error },
      );
    }
  }
}

/** Null: nothing is there. */
function factsOf(path: string, read: (path: string) => Deno.FileInfo): Deno.FileInfo | null {
  try {
    return read(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    if (error instanceof Deno.errors.NotADirectory) return null;
    throw error;
  }
}
