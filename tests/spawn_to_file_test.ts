import { strictEqual } from "node:assert/strict";
import { spawnToFile } from "./spawn_to_file.ts";

Deno.test("a command ends although a process that it left behind holds its output", async () => {
  const path = await Deno.makeTempFile({ prefix: "holdfast-spawn-" });
  try {
    const argv = ["sh", "-c", "sleep 3600 & echo $!; echo said >&2; exit 3"];
    const { code } = await spawnToFile(argv, { path, cwd: ".", env: {} }).status;
    const [pid, line] = (await Deno.readTextFile(path)).split("\n");
    Deno.kill(Number(pid), "SIGKILL");
    strictEqual(line, "said");
    strictEqual(code, 3);
  } finally {
    await Deno.remove(path);
  }
});
