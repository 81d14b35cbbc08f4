import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import {
  algorithmPage,
  algorithmPageUrl,
  listPage,
  withFiles,
} from "../../../docs/generate/algorithm_pages.ts";

const TABLE = "Before.\n\n| algorithm | old |\n|---|---|\n| gone | x |\n\nAfter.\n";
const page = (when: string) => `# Title\n\n[arXiv:1234.5678](https://x)\n\n${when}\n`;

Deno.test("withFiles() shows files as they are now, and leaves other blocks as they are", () => {
  const source = Deno.readTextFileSync(new URL("../../../algs/sft.ts", import.meta.url));
  const shown = withFiles("A\n```ts shows=algs/sft.ts\nold\n```\nB\n```ts\nkept\n```\n");
  strictEqual(shown, `A\n\`\`\`ts shows=algs/sft.ts\n${source}\`\`\`\nB\n\`\`\`ts\nkept\n\`\`\`\n`);
  strictEqual(withFiles(shown), shown);
});

Deno.test("algorithmPage() replaces the profiles up to the next heading, and nothing else", () => {
  const before = "# P\n\n<!-- Profiles: old. -->\n\nold table\n\n## Metrics\n\nkept\n";
  const fresh = algorithmPage("dapo", before);
  match(fresh, /^# P\n\n<!-- Profiles: written by `deno task schema`\. -->\n\n\| profile \| of \|/);
  match(fresh, /\n\n## Metrics\n\nkept\n$/);
  strictEqual(fresh.includes("old"), false);
  strictEqual(algorithmPage("dapo", fresh), fresh);
});

Deno.test("listPage() has a row for each page, from the code and from the page", () => {
  const list = listPage(TABLE, { sft: page("**When:** always."), grpo: page("**When:** now.") });
  const rows = list.split("\n").filter((line) => line.startsWith("| ["));
  deepStrictEqual(rows.map((row) => row.split(" | ").filter((_, i) => i !== 1)), [
    ["| [`sft`](sft.md)", "[arXiv:1234.5678](https://x)", "rows", "–", "no", "no", "always |"],
    [
      "| [`grpo`](grpo.md)",
      "[arXiv:1234.5678](https://x)",
      "rewards",
      "2",
      "if asked for",
      "no",
      "now |",
    ],
  ]);
  match(list, /^Before\.\n\n\| algorithm \| what it is \|/);
  match(list, /\n\nAfter\.\n$/);
  strictEqual(list.includes("gone"), false);
});

Deno.test("listPage() refuses a page that does not say when to use its algorithm", () => {
  throws(() => listPage(TABLE, { sft: page("When: always.") }), {
    name: "SyntaxError",
    message: "Cannot list 'sft' because its page has no line '**When:** ....'",
  });
});

Deno.test("algorithmPageUrl() names a page that is there", async () => {
  strictEqual((await Deno.stat(algorithmPageUrl("grpo"))).isFile, true);
});
