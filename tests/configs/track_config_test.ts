import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { parseConfig, QuickstartConfig, TrackConfig } from "../../configs/mod.ts";

const FILE = new URL("../../configs/quickstart_small.yaml", import.meta.url);

async function parsed(...overrides: string[]) {
  const text = await Deno.readTextFile(FILE);
  const { config } = await parseConfig(text, { file: FILE.pathname, overrides, cwd: "/here" });
  return config as QuickstartConfig;
}

Deno.test("track is absent unless it is named; its short form is a tracker's name", async () => {
  strictEqual("track" in await parsed(), false);
  const { track } = await parsed("track=tensorboard");
  deepStrictEqual(track!.map(({ name }) => name), ["tensorboard"]);
  const many = await parsed("track=[wandb,{name: mlflow, uri: http://there}]");
  deepStrictEqual(many.track!.map(({ name }) => name), ["wandb", "mlflow"]);
});

Deno.test("directories of trackers are absolute, addresses stay", async () => {
  const { track } = await parsed(
    "track=[{name: tensorboard, dir: tb},{name: mlflow, uri: runs},{name: mlflow, uri: http://a}]",
  );
  deepStrictEqual(track!.map((one) => "dir" in one ? one.dir : "uri" in one ? one.uri : null), [
    "/here/tb",
    "/here/runs",
    "http://a",
  ]);
});

Deno.test("an address with a password is refused, and a misspelt tracker", async () => {
  for (const uri of ["http://me:secret@there", "https://secret@there/mlflow"]) {
    await rejects(parsed(`track=[{name: mlflow, uri: "${uri}"}]`), /MLFLOW_TRACKING_PASSWORD/);
  }
  await rejects(parsed("track=wandbb"), /did you mean wandb\?/);
  strictEqual(TrackConfig.safeParse([{ name: "mlflow", uri: "http://a/b@c" }]).success, true);
});
