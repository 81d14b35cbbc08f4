import { deepStrictEqual, ok } from "node:assert/strict";

const OPENING_CHARS = 40;

Deno.test("CHANGELOG.md says nothing twice: no two entries of a version open with the same words", async () => {
  const page = await Deno.readTextFile(new URL("../../CHANGELOG.md", import.meta.url));
  for (const version of page.split(/^## /m).slice(1)) {
    const entries = version.split(/^- /m).slice(1).map((entry) =>
      entry.replaceAll(/\s+/g, " ").trim()
    );
    ok(entries.length > 0, version);
    const openings = entries.map((entry) => entry.slice(0, OPENING_CHARS));
    deepStrictEqual(openings.filter((opening, place) => openings.indexOf(opening) < place), []);
  }
});
