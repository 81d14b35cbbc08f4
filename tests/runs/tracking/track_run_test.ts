import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { trackRun } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const LINES: string[] = [];
const say = (text: string) => void LINES.push(text);

Deno.test("trackRun() refuses a run without trackers, and settings of anything else", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const done = (await home.store.head(head.id))!;
  await rejects(trackRun(home, done, { say }), /it has no trackers\. Fix: name one/);
  await rejects(
    trackRun(home, done, { say, overrides: ["rounds=3", "track=tensorboard"] }),
    /rounds is no setting of trackers/,
  );
  deepStrictEqual(LINES, []);
});

Deno.test("trackRun() says what a tracker lacks, and records nothing", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const done = (await home.store.head("a"))!;
  const before = await home.store.read("a");
  const python = `${home.dir}/no_python`;
  await Deno.writeTextFile(python, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const overrides = [`track=[{name: tensorboard, python: ${python}}]`];
  strictEqual(await trackRun(home, done, { say, overrides }), false);
  strictEqual(LINES.length, 2);
  deepStrictEqual(await home.store.read("a"), before);
});
