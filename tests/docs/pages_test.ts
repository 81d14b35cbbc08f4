/** Every command and script of every page, run as a reader would, one page after the other. */
import { checkPage, PAGES, Workbench } from "./check_page.ts";

let bench: Workbench;
Deno.test.beforeAll(async () => {
  bench = await Workbench.open();
});
Deno.test.afterAll(() => bench.close());

for (const path of PAGES.keys()) {
  Deno.test(`${path}: every block runs, and prints what the page says`, async (t) => {
    await checkPage(t, path, { bench });
  });
}
