import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { DeviceExcluded, Recovery } from "../../../workers/mod.ts";

const row = {
  cause: "worker_lost",
  action: "load_checkpoint",
  version: "v",
  batches_redone: 2,
  seconds: 1.5,
};

Deno.test("Recovery reads rows of the policy's chain and of a different group's", () => {
  deepStrictEqual(Recovery.parse(row), row);
  deepStrictEqual(Recovery.parse({ ...row, group: "critic" }).group, "critic");
});

Deno.test("Recovery refuses an unknown action, negative numbers and unknown fields", () => {
  const wrong = [{ action: "reboot" }, { batches_redone: -1 }, { seconds: -0.1 }, { extra: 1 }];
  for (const field of wrong) strictEqual(Recovery.safeParse({ ...row, ...field }).success, false);
});

Deno.test("DeviceExcluded names the group, the sign and the devices", () => {
  const excluded = { group: "trainer", observed: "cuda_ecc", devices: ["1"] };
  deepStrictEqual(DeviceExcluded.parse(excluded), excluded);
  strictEqual(DeviceExcluded.safeParse({ ...excluded, devices: [1] }).success, false);
});
