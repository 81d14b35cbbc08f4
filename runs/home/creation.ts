import { PRIVATE_FILE } from "../../engine/mod.ts";
import type { Home } from "./home.ts";

const LOCK = "creation.lock";

/**
 * Until it is closed, no other process creates a run in this home: of two runs with one id, the one
 * that comes second would replace checkpoints that the first has linked. The system releases it if
 * the process dies.
 */
export async function creation({ dir }: Pick<Home, "dir">): Promise<Disposable> {
  const file = await Deno.open(`${dir}/${LOCK}`, {
    read: true,
    write: true,
    create: true,
    mode: PRIVATE_FILE,
  });
  try {
    await file.lock(true);
  } catch (error) {
    file.close();
    throw error;
  }
  return file;
}
