import { Command as Commander, Option } from "commander";

/**
 * An option that a verb reads by the name that configurations would have: `--dry-run` is `dry_run`.
 */
class SnakeOption extends Option {
  override attributeName(): string {
    return this.name().replace(/^no-/, "").replaceAll("-", "_");
  }
}

/** Commander's command, with options in snake_case. Its sub-commands are of the same kind. */
export class Command extends Commander {
  override createCommand(name?: string): Command {
    return new Command(name);
  }

  override createOption(flags: string, description?: string): Option {
    return new SnakeOption(flags, description);
  }
}
