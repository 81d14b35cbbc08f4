import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";

const ROOT = new URL("../../", import.meta.url);
const { tasks } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT))) as {
  tasks: Record<string, { command: string }>;
};
const page = (await Deno.readTextFile(new URL("docs/custom_graphs.md", ROOT))).replaceAll(
  /\s+/g,
  " ",
);

/** Permissions that a task gives to what it runs; null: it runs another task. */
function permissions({ command }: { command: string }): string[] | null {
  if (command.startsWith("deno task ")) return null;
  return command.split(" ").filter((word) => /^(-A|--allow-|-[RWENSI]\b)/.test(word));
}

Deno.test("a task has every permission only where the page says why; the others name what they need", () => {
  const restricted = Object.entries(tasks).flatMap(([name, task]) => {
    const flags = permissions(task);
    return flags === null ? [] : [{ name, flags }];
  });
  const all = restricted.filter(({ flags }) =>
    flags.some((word) => /^(-A|--allow-all)$/.test(word))
  )
    .map(({ name }) => name);
  deepStrictEqual(all.sort(), ["bench", "rl", "test"]);
  for (const name of all) ok(page.includes(`\`deno task ${name}\``), name);
  const less = restricted.filter(({ name }) => !all.includes(name));
  ok(
    page.includes(
      `(${less.map(({ name }) => `\`${name}\``).toSorted().toReversed().join(", ")}) request less`,
    ),
  );
  for (const { name, flags } of less) ok(flags.length > 0, name);
});

Deno.test({
  name: "the reason holds: Deno opens /dev and /proc only to a process that may do everything",
  ignore: Deno.build.os !== "linux",
  async fn() {
    ok(page.includes("Deno opens these only to a process with all permissions"));
    const script = await Deno.makeTempFile({ suffix: ".ts" });
    await Deno.writeTextFile(
      script,
      `for (const look of [() => Deno.readDirSync("/proc"), () => Deno.readTextFileSync("/proc/1/environ"),
        () => Deno.statSync("/dev/nvidia0")]) try { look() } catch (error) { console.log((error as Error).name); }`,
    );
    const most = ["read", "write", "env", "run", "sys", "net", "import"].map((name) =>
      `--allow-${name}`
    );
    try {
      const args = ["run", "--quiet", "--no-prompt", "--no-config", ...most, script];
      const { stdout, success } = await new Deno.Command(Deno.execPath(), { args }).output();
      deepStrictEqual([success, new TextDecoder().decode(stdout)], [
        true,
        "NotCapable\n".repeat(3),
      ]);
    } finally {
      await Deno.remove(script);
    }
  },
});

Deno.test("what test and bench start has every permission too, so fewer of their own would keep nothing from it", async () => {
  for (const path of ["tests/gate/job.ts", "bench/recovery.ts"]) {
    strictEqual((await Deno.readTextFile(new URL(path, ROOT))).includes('"-A"'), true, path);
  }
});
