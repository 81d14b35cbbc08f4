/** Packages that a line names. */
const SHOWN = 3;

/** What uv is doing, read from its output. */
export class InstallProgress {
  /** Sizes by name. */
  readonly #downloads = new Map<string, string>();
  readonly #builds = new Set<string>();
  #phase = "looking up the packages";

  /** Reads one line of uv. */
  take(line: string): void {
    const [, verb, rest = ""] = /^\s*(\w+) (.*)$/.exec(line) ?? [];
    const [, name = "", size = ""] = /^([^\s=]+)\S*\s*(.*)$/.exec(rest) ?? [];
    switch (verb) {
      case "Resolved":
        this.#phase = `fetching ${packages(rest)}`;
        break;
      case "Downloading":
        this.#downloads.set(name, size.replace(/(\d)([KMG]iB)/, "$1 $2"));
        break;
      case "Downloaded":
        this.#downloads.delete(name);
        break;
      case "Building":
        this.#builds.add(name);
        break;
      case "Built":
        this.#builds.delete(name);
        break;
      case "Prepared":
        this.#downloads.clear();
        this.#phase = `installing ${packages(rest)}`;
        break;
    }
  }

  /** As in `downloading torch (182.9 MiB), numpy (16.1 MiB); building deepspeed`. */
  text(): string {
    const downloads = [...this.#downloads].map(([name, size]) => `${name} ${size}`.trim());
    const parts = [named("downloading", downloads), named("building", [...this.#builds])].filter(
      Boolean,
    );
    return parts.join("; ") || this.#phase;
  }
}

function named(verb: string, names: string[]): string {
  if (names.length === 0) return "";
  const more = names.length - SHOWN;
  return `${verb} ${names.slice(0, SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** `51 packages` of `51 packages in 1.4s`. */
function packages(text: string): string {
  return /^\d+ packages?/.exec(text)?.[0] ?? "packages";
}
