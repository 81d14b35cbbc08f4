import { strictEqual } from "node:assert/strict";
import { causesPage, causesTable, FAILURES_PAGE_URL } from "../../../workers/mod.ts";

Deno.test("docs/failures.md has the code's table of causes: deno task schema", async () => {
  const page = await Deno.readTextFile(FAILURES_PAGE_URL);
  strictEqual(page, causesPage(page));
  strictEqual(page.includes(`\n\n${causesTable()}\n\n`), true);
});

Deno.test("causesPage() replaces the table and nothing else", () => {
  strictEqual(
    causesPage("# a\n\n| kind | old |\n| x |\n\nb | kind |\n"),
    `# a\n\n${causesTable()}\n\nb | kind |\n`,
  );
});
