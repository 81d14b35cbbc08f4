import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { denoIn } from "../copy_tree.ts";
import { checkPage, PAGES, withWorkbench } from "./check_page.ts";
import { NOT_RUN } from "./not_run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

Deno.test("configurations, JSON and files that pages show are as the product reads them", async (t) => {
  await withWorkbench(async (bench) => {
    for (const path of PAGES.keys()) {
      await t.step(path, async (t) => await checkPage(t, path, { bench, read: true }));
    }
  });
});

Deno.test("no two pages give their runs one id, for all pages run in one home", () => {
  const pages = new Map<string, string>();
  for (const [path, { blocks }] of PAGES) {
    const shells = blocks.filter(({ lang }) => lang === "sh").map(({ text }) => text).join("\n");
    for (const [, id] of shells.matchAll(/--id (\S+)/g)) {
      const other = pages.get(id!) ?? path;
      strictEqual(other, path, `${other} and ${path} both have a run '${id}'`);
      pages.set(id!, path);
    }
  }
});

Deno.test("links between pages lead somewhere, anchors too", () => {
  const broken: string[] = [];
  for (const [path, { links }] of PAGES) {
    for (const { target, line } of links) {
      if (/^https?:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const to = file === "" ? path : normalize(join(dirname(path), file));
      const there = file === "" || exists(`${ROOT}${to}`);
      if (!there || (anchor && !PAGES.get(to)?.anchors.has(anchor))) {
        broken.push(`${path}:${line} ${target}`);
      }
    }
  }
  deepStrictEqual(broken, []);
});

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test("what is listed as not run is in the docs still, and in the test that runs it", () => {
  const commands = new Set(
    [...PAGES.values()].flatMap(({ blocks }) =>
      blocks.filter(({ lang }) => lang === "sh").flatMap(({ text }) =>
        text.split("\n").map((line) => line.trim())
      )
    ),
  );
  deepStrictEqual(NOT_RUN.filter(({ command }) => !commands.has(command)), []);
  deepStrictEqual(NOT_RUN.filter(({ covered_by }) => !exists(`${ROOT}${covered_by}`)), []);
});

Deno.test("the README's custom graph has at most 30 lines", () => {
  const scripts = PAGES.get("README.md")!.blocks.filter(({ lang }) => lang === "ts");
  deepStrictEqual(scripts.map(({ text }) => text.trimEnd().split("\n").length <= 30), [true]);
});

Deno.test("the README names every verb of the command line", async () => {
  const { output } = await denoIn(ROOT, ["run", "-A", "--quiet", "cli/main.ts", "--help"]);
  const listed = output.slice(output.indexOf("Commands:")).matchAll(/^ {2}([a-z]+)/gm);
  const verbs = [...listed].map((match) => match[1]!).filter((verb) => verb !== "help");
  ok(verbs.length > 10, output);
  const readme = Deno.readTextFileSync(`${ROOT}README.md`);
  deepStrictEqual(verbs.filter((verb) => !new RegExp(`\`${verb}\\b`).test(readme)), []);
});
