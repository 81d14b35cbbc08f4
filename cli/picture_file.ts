import { dirname, join, resolve } from "node:path";
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
    const found = this.#factsOf(this.path);
    if (found?.isDirectory) throw this.#refused("it is a directory. Fix: name a file in it");
    if (found !== null && !this.#force) {
      throw this.#refused("it exists. Fix: choose another name, or replace it with --force");
    }
    // A link, a device or a pipe is not replaced: what it leads to would not get the picture.
    if (found !== null && !found.isFile) {
      throw this.#refused("it is not a regular file. Fix: choose another name");
    }
    if (found !== null) return;
    const directory = dirname(this.path);
    if (this.#factsOf(directory) === null) {
      throw this.#refused(`its directory does not exist. Fix: mkdir -p ${directory}`);
    }
  }

  /** Writes it beside its place and then moves it there. */
  async write(content: string | Uint8Array): Promise<void> {
    const begun = join(dirname(this.path), `.${crypto.randomUUID()}.new`);
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    try {
      await Deno.writeFile(begun, bytes, { createNew: true });
      this.check(); // Another command may have written it in the meantime.
      await Deno.rename(begun, this.path);
    } catch (error) {
      await Deno.remove(begun).catch(() => {}); // It may not be there.
      throw error instanceof InvalidInputError ? error : this.#refused((error as Error).message);
    }
  }

  /** Null: nothing is there. */
  #factsOf(path: string): Deno.FileInfo | null {
    try {
      return Deno.lstatSync(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw this.#refused((error as Error).message);
    }
  }

  #refused(why: string): InvalidInputError {
    return new InvalidInputError(`Cannot write ${this.path} because ${why}`, { path: this.path });
  }
}
