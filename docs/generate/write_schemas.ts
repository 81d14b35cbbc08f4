/**
 * Writes what is generated from the code: the JSON Schemas, the page of settings, the table of
 * failures, the files and profiles that the algorithms' pages show, and the page and configuration
 * of a new algorithm. `deno task schema`; tests fail if one is stale.
 */
import { ALGORITHMS } from "../../algs/mod.ts";
import { configSchemaText, SETTINGS_PAGE_URL, settingsPage } from "../../configs/mod.ts";
import {
  causesPage,
  FAILURES_PAGE_URL,
  PYTHON_FRAMES_URL,
  PYTHON_LIMITS_URL,
  PYTHON_TYPES_URLS,
  pythonFramesText,
  pythonLimitsText,
  pythonTypesTexts,
} from "../../workers/mod.ts";
import { algorithmPage, algorithmPageUrl, listPage, withFiles } from "./algorithm_pages.ts";
import { writeMissing } from "./algorithm_stubs.ts";

await Deno.writeTextFile(
  new URL("../../configs/holdfast.schema.json", import.meta.url),
  configSchemaText(),
);
await Deno.writeTextFile(SETTINGS_PAGE_URL, settingsPage());
await Deno.writeTextFile(PYTHON_FRAMES_URL, pythonFramesText());
await Deno.writeTextFile(PYTHON_LIMITS_URL, pythonLimitsText());
const { types, answers } = pythonTypesTexts();
await Deno.writeTextFile(PYTHON_TYPES_URLS.types, types);
await Deno.writeTextFile(PYTHON_TYPES_URLS.answers, answers);
await Deno.writeTextFile(FAILURES_PAGE_URL, causesPage(await Deno.readTextFile(FAILURES_PAGE_URL)));

await writeMissing();
const pages: Record<string, string> = {};
for (const name of Object.keys(ALGORITHMS)) {
  const url = algorithmPageUrl(name);
  pages[name] = algorithmPage(name, await Deno.readTextFile(url));
  await Deno.writeTextFile(url, pages[name]);
}
const list = algorithmPageUrl("README");
await Deno.writeTextFile(list, listPage(await Deno.readTextFile(list), pages));
const docs = new URL("../", import.meta.url);
for await (const { name } of Deno.readDir(docs)) {
  if (!name.endsWith(".md")) continue;
  const page = await Deno.readTextFile(new URL(name, docs));
  if (withFiles(page) !== page) await Deno.writeTextFile(new URL(name, docs), withFiles(page));
}
