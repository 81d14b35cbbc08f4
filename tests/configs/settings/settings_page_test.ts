import { ok, strictEqual } from "node:assert/strict";
import { FLOWS, settingsOf } from "../../../configs/mod.ts";
import { SETTINGS_PAGE_URL, settingsPage } from "../../../configs/settings/settings_page.ts";

Deno.test("docs/settings.md is what the settings say: deno task schema", () => {
  strictEqual(Deno.readTextFileSync(SETTINGS_PAGE_URL), settingsPage());
});

Deno.test("settingsPage() has a row for every setting, with its unit", () => {
  const lines = settingsPage().split("\n");
  for (const { path, declared: declared, block } of Object.values(FLOWS).flatMap(settingsOf)) {
    if (block) continue;
    const rows = lines.filter((line) => line.startsWith(`| \`${path}\``));
    ok(rows.some((row) => row.includes(` | ${declared.unit ?? ""} | `)), path);
  }
});
