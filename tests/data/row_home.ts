/** A home for what is derived from data files, removed when the test file ends. */
export async function rowHome(): Promise<string> {
  const home = await Deno.makeTempDir({ prefix: "row_home_" });
  globalThis.addEventListener("unload", () => Deno.removeSync(home, { recursive: true }));
  return home;
}
