import { join } from "node:path";
import { namesIn } from "./files_on_disk.ts";

/** Python runs it when it starts, before it imports a package of the environment. */
const FILE = "holdfast_bytecode.pth";
const LINE = "import sys; sys.dont_write_bytecode = False\n";

/**
 * Lets an environment's Python keep what it compiles, even under `PYTHONDONTWRITEBYTECODE`, which
 * many container images set. Installing compiles nothing, so otherwise every process would compile
 * all of PyTorch that it imports.
 */
export async function keepBytecode(path: string): Promise<void> {
  const lib = join(path, "lib");
  for (const name of namesIn(lib)) {
    await Deno.writeTextFile(join(lib, name, "site-packages", FILE), LINE);
  }
}
