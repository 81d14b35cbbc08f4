import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { WorkersConfig } from "../../workers/mod.ts";
import { undescribed } from "./environments/undescribed.ts";

Deno.test("WorkersConfig describes every field", () => {
  deepStrictEqual(undescribed(WorkersConfig), []);
});

Deno.test("WorkersConfig: workers wait 30 s for a lost engine, and the hub is on loopback", () => {
  deepStrictEqual(WorkersConfig.parse({}), {
    grace_s: 30,
    silent_s: 5,
    start_timeout_s: 300,
    no_progress_s: 600,
    load_timeout_s: null,
    generate_timeout_s: null,
    score_timeout_s: null,
    train_timeout_s: null,
    save_timeout_s: null,
    publish_timeout_s: null,
    preempt_grace_s: 25,
    host: "127.0.0.1",
    port: 0,
    interface: null,
  });
});

Deno.test("WorkersConfig refuses values that no machine has, and unknown names", () => {
  const refused = [
    { port: 65_536 },
    { silent_s: 0 },
    { grace_s: 3601 },
    { train_timeout_s: 0 },
    { train_timeout_s: 604_801 }, // Over a week: milliseconds, perhaps.
    { interface: "a".repeat(16) }, // Linux's limit is 15.
    { grace: 30 },
  ];
  for (const block of refused) strictEqual(WorkersConfig.safeParse(block).success, false);
});
