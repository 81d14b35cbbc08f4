import { checkPage, withWorkbench } from "../docs/check_page.ts";

Deno.test("every command of the first page runs, and prints what the page says", async (t) => {
  await withWorkbench((bench) => checkPage(t, "README.md", { bench }));
});
