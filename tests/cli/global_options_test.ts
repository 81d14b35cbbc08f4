import { deepStrictEqual, match, ok, rejects, strictEqual, throws } from "node:assert/strict";
import { Command } from "../../cli/command.ts";
import { GlobalOptions } from "../../cli/global_options.ts";
import { InvalidInputError } from "../../engine/mod.ts";

/** The options of a line, with a verb that has `--home` too. */
async function of(line: string): Promise<GlobalOptions> {
  const found: GlobalOptions[] = [];
  const root = new Command("rl").option("--home <dir>", "home", "default_home")
    .option("--store <url>", "store");
  root.command("verb").option("--home <dir>", "home").action((_, command: Command) =>
    void found.push(GlobalOptions.of(command))
  );
  await root.parseAsync(line.split(" "), { from: "user" });
  return found[0]!;
}

Deno.test("GlobalOptions: an option after the verb wins over the same one before it", async () => {
  deepStrictEqual(
    [
      (await of("verb")).home,
      (await of("--home a verb")).home,
      (await of("verb --home b")).home,
      (await of("--home a verb --home b")).home,
    ],
    ["default_home", "a", "b", "b"],
  );
});

Deno.test("GlobalOptions: the store is the line's, else the environment's", () => {
  const before = Deno.env.get("HOLDFAST_STORE");
  try {
    Deno.env.set("HOLDFAST_STORE", "postgres://environment");
    strictEqual(new GlobalOptions({}).store, "postgres://environment");
    strictEqual(new GlobalOptions({ store: "postgres://line" }).store, "postgres://line");
    Deno.env.set("HOLDFAST_STORE", "");
    strictEqual(new GlobalOptions({}).store, undefined);
  } finally {
    if (before === undefined) Deno.env.delete("HOLDFAST_STORE");
    else Deno.env.set("HOLDFAST_STORE", before);
  }
});

Deno.test("withHome() names the home in an error's advice, and closes the home", async () => {
  const dir = await Deno.makeTempDir({ prefix: "global_options_test_" });
  const options = new GlobalOptions({ home: dir });
  const failed = options.withHome(() =>
    Promise.reject(new InvalidInputError("Cannot go on.\n  next: deno task rl resume a"))
  );
  await rejects(failed, { message: `Cannot go on.\n  next: deno task rl resume a --home ${dir}` });
  const store = await options.withHome((home) => Promise.resolve(home.store));
  await rejects(
    store.heads({ limit: 1 }),
    (error: Error) => (match(error.message, /clos|open/), true),
  );
  ok(await Deno.stat(`${dir}/holdfast.db`));
  await Deno.remove(dir, { recursive: true });
});

Deno.test("GlobalOptions: --home that names no directory is refused by every verb", () => {
  for (const home of ["", "/"]) {
    throws(() => new GlobalOptions({ home }), /^InvalidInputError: Cannot use '\/?' as the home/);
  }
});
