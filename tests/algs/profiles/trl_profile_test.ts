import { ok } from "node:assert/strict";
import { trl } from "../../../algs/profiles/trl_profile.ts";

Deno.test("profile trl is of the release that it is compared with", async () => {
  const pinned = await Deno.readTextFile(new URL("../../requirements/trl.txt", import.meta.url));
  const { source } = trl;
  ok(
    "release" in source && pinned.includes(`trl==${source.release}`),
    "tests/requirements/trl.txt has another TRL",
  );
});
