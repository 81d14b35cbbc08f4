/** A home that nothing ran in, with rows that are good and rows that are not. */
import { freshHome } from "./fixtures.ts";

export const home = await freshHome();
export const at = ["--home", home];
export const GOOD = `${home}/good.jsonl`;
await Deno.writeTextFile(
  GOOD,
  `{"prompt":"1+1","answer":"2"}\n{"prompt":"1+2","answer":"3","completion":"4"}\n`,
);
export const BAD = `${home}/bad.jsonl`;
await Deno.writeTextFile(BAD, `{"prompt":"1+1","answer":"2"}\n{"prompt":3}\n`);
