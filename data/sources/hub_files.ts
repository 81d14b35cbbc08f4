/** Where the files of a hub's data set are on this host. Reads no network. */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { isAbsolute, join, normalize } from "node:path";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { hubDataset, hubDatasetText, isHubDataset } from "../hub_dataset.ts";
import { hubName } from "../hub_name.ts";

/** What the fetching process keeps of a part (`holdfast_worker/model_hub/cache.py`). */
const PartFile = z.object({ files: z.array(z.object({ path: z.string() })) });

/**
 * The files of a source at the hub, in the order in which they are read. Each host looks in its own
 * cache, so a run finds its rows wherever that is.
 * @throws {DataError} If the source has no commit, or the cache does not have its files.
 */
export async function hubFiles(path: string): Promise<string[]> {
  const { name, part } = hubDataset(path);
  const { directory, commit } = snapshotOf(path);
  const identity = JSON.stringify([part.files, part.subset, part.split]);
  const key = createHash("sha256").update(identity).digest("hex");
  const known = await partFile(`${directory}/holdfast/${commit}/${key}.json`);
  const files = known?.files.map((file) => `${directory}/snapshots/${commit}/${file.path}`) ?? [];
  const are_here = await Promise.all(files.map(isFile));
  if (files.length === 0 || are_here.includes(false)) throw absent(path, name);
  return files;
}

/**
 * Where a file is on this host. A file of the hub has one name on every host:
 * `hf://datasets/OWNER/NAME@REVISION@COMMIT/FILE`. Other paths are returned as they are.
 * @throws {DataError} If the hub's file has no commit, or leaves its repository.
 */
export function hostPath(path: string): string {
  if (!isHubDataset(path)) return path;
  const { name, part: { files } } = hubDataset(path);
  const { directory, commit } = snapshotOf(path);
  const inside = normalize(files ?? "");
  if (files === null || isAbsolute(inside) || inside.startsWith("..")) throw absent(path, name);
  return `${directory}/snapshots/${commit}/${inside}`;
}

/** The name that a file of a source has on every host. */
export function hubFileName(path: string, file: string): string {
  if (!isHubDataset(path)) return file;
  const { name } = hubDataset(path);
  const { directory, commit } = snapshotOf(path);
  const files = file.slice(`${directory}/snapshots/${commit}/`.length);
  return hubDatasetText({ name, part: { files, subset: null, split: null } });
}

/** Everything that this host's cache has of a data set. */
function snapshotOf(path: string): { directory: string; commit: string } {
  const { repository, commit } = hubName(hubDataset(path).name)!;
  if (commit === null) {
    throw new DataError(
      "the source has no commit: another version could arrive at the next start; give createRun " +
        "the configuration that pinnedData returns",
      { file: path },
    );
  }
  return { directory: `${hubCache()}/datasets--${repository.replace("/", "--")}`, commit };
}

/** The hub's own cache, where its client looks for it. */
function hubCache(): string {
  const env = (name: string) => Deno.env.get(name)?.replace(/^~(?=\/|$)/, homedir());
  const home = env("HF_HOME") ??
    join(env("XDG_CACHE_HOME") ?? `${homedir()}/.cache`, "huggingface");
  return env("HF_HUB_CACHE") ?? env("HUGGINGFACE_HUB_CACHE") ?? join(home, "hub");
}

/** null: it is absent, or damaged, which is the same. */
async function partFile(path: string): Promise<z.infer<typeof PartFile> | null> {
  try {
    return PartFile.parse(JSON.parse(await Deno.readTextFile(path)));
  } catch {
    return null;
  }
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then(({ isFile }) => isFile, () => false);
}

function absent(path: string, name: string): DataError {
  return new DataError(
    `this host's cache ${hubCache()} does not have these files of '${name}'; run ` +
      "`deno task rl fetch CONFIG` on this host, or name the cache that has them (HF_HOME)",
    { file: path },
  );
}
