import { join } from "node:path";

/** An executable that answers as `text` says. */
export async function fakePython(home: string, text: string): Promise<string> {
  const path = join(home, `python-${crypto.randomUUID()}`);
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}
