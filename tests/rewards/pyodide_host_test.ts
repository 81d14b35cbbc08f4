import { match, strictEqual } from "node:assert/strict";
import { codeSettings } from "../../rewards/code.ts";
import { RewardConfig } from "../../rewards/mod.ts";

const config = RewardConfig.parse({ name: "code" }) as Parameters<typeof codeSettings>[0];
const { host, pyodide } = codeSettings(config).runtime as { host: string; pyodide: string };

Deno.test("the host reads nothing that it was not given", async () => {
  const flags = ["--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-npm", "--no-remote"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, host, "make", pyodide],
    env: { NO_COLOR: "1" },
  }).output();
  strictEqual(code, 1);
  strictEqual(stdout.length, 0);
  match(new TextDecoder().decode(stderr), /Requires read access/);
});
