import { match } from "node:assert/strict";
import { PAGES } from "./check_page.ts";

Deno.test("changes/ has pages of entries alone, so that a release can put them one after another", () => {
  for (const path of PAGES.keys()) {
    if (!/^changes\/(?!README)/.test(path)) continue;
    const text = Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
    match(
      text,
      /^(?:- \S.*\n(?: {2}\S.*\n)*)+$/,
      `${path} has entries, '- ' and one sentence or more, and nothing else`,
    );
  }
});
