import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Command } from "../../cli/command.ts";

Deno.test("Command reads options in snake_case, in sub-commands too, and negated ones", async () => {
  const seen: unknown[] = [];
  const root = new Command("root").option("--in-all", "of every verb");
  root.command("verb").option("--dry-run", "only say").option("--poll-s <s>", "seconds", Number, 2)
    .option(
      "--no-live-view",
      "plain lines",
    ).action((flags, command: Command) => void seen.push(flags, command.optsWithGlobals()));
  await root.parseAsync(["--in-all", "verb", "--dry-run", "--poll-s", "7", "--no-live-view"], {
    from: "user",
  });
  const options = { dry_run: true, poll_s: 7, live_view: false };
  deepStrictEqual(seen, [options, { ...options, in_all: true }]);
});

Deno.test("Command gives an option that is not named its default, by the same name", async () => {
  const command = new Command("root").option("--lease-s <s>", "seconds", Number, 30);
  await command.parseAsync([], { from: "user" });
  strictEqual(command.opts().lease_s, 30);
});
