import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import {
  Engine,
  InvalidInputError,
  JOURNAL_VERSION,
  type ServeEvent,
} from "../../../engine/mod.ts";
import {
  collectGarbage,
  findRun,
  forkRun,
  resumeRun,
  serveRuns,
  verifyRun,
} from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";

const OTHERS = [JOURNAL_VERSION - 1, JOURNAL_VERSION + 1];
const refusal = ({ code, message }: InvalidInputError) => {
  strictEqual(code, "invalid_input");
  match(
    message,
    new RegExp(
      `'later' because its journal has version (?:${OTHERS.join("|")}), and this Holdfast has ` +
        `version ${JOURNAL_VERSION}\\.`,
    ),
  );
  return true;
};

for (const journal of OTHERS) {
  Deno.test(`a journal of version ${journal} is refused, with both versions`, async () => {
    const home = await freshFakeHome();
    const { store, artifacts } = home;
    const known = await createFakeRun(home, "known");
    strictEqual(known.journal, JOURNAL_VERSION);
    const head = await store.create({ ...known, id: "later", journal });
    const uses: Record<string, () => Promise<unknown>> = {
      "every command that names a run": () => findRun(home, "later"),
      resume: () => resumeRun(home, "later"),
      fork: () => forkRun(home, head, { round: 0 }),
      verify: () => verifyRun(home, head),
      gc: () => collectGarbage(home),
      "an engine": () =>
        new Engine({ store, artifacts }).execute("later", online.build(JSON.parse(known.config))),
    };
    for (const use of Object.values(uses)) await rejects(use(), refusal);
    const way = /No Holdfast collects a home whose runs have several versions.*with --home/;
    await rejects(collectGarbage(home), { message: way });
    deepStrictEqual(await store.head("later"), head);
  });
}

Deno.test("a serving engine leaves a run of another Holdfast, and says why", async () => {
  const home = await freshFakeHome();
  const known = await createFakeRun(home, "known");
  const later = { id: "later", journal: JOURNAL_VERSION + 1, queue: "q" };
  const head = await home.store.create({ ...known, ...later });
  const events: ServeEvent[] = [];
  const { signal: drain } = new AbortController();
  await serveRuns(home, {
    queues: { q: Infinity },
    until_idle: true,
    drain,
    onEvent: (event) => void events.push(event),
  });
  const [refused] = events as Extract<ServeEvent, { type: "refused" }>[];
  deepStrictEqual([events.length, refused!.run], [1, "later"]);
  match(refused!.reason, /journal has version/);
  deepStrictEqual(await home.store.head("later"), head);
});
