import { basename, dirname } from "node:path";
import {
  type Config,
  holds,
  loadConfig,
  namedFiles,
  type ShippedFile,
  type ShippedFiles,
  shippedFiles,
} from "../../configs/mod.ts";
import { pinnedData, pinnedModels } from "../../runs/mod.ts";
import { freeBytes, InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import { download, presence } from "../download.ts";
import { print, quoted, size, tell } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";

/** `fetch CONFIG`: downloads what a shipped configuration reads. */
export const fetchVerb = defineVerb({
  name: "fetch",
  about: "download the model and data of a shipped configuration",
  arguments: { "<config>": ARGUMENTS.config, "[overrides...]": ARGUMENTS.overrides },
  options: {},
  async action({ args: { config, overrides } }) {
    print(await fetchFiles(config, { overrides }));
  },
});

type FetchOptions = {
  overrides?: string[];
  /** What can be fetched. */
  known?: ShippedFiles[];
  /** Free bytes on a directory's disk; null if unknown. */
  free?: (dir: string) => number | null;
};

/**
 * Downloads the model and the data of a configuration to where it looks for them. Existing files
 * stay unchanged. Returns what is there now.
 * @throws {InfrastructureError} Says what to put where by hand.
 */
export async function fetchFiles(file: string, options: FetchOptions = {}): Promise<string> {
  const { overrides = [], known = shippedFiles(), free = freeBytes } = options;
  const { config } = await loadConfig(file, { overrides, cwd: Deno.cwd(), files_missing: true });
  const say = tell;
  const onSetup = ({ text }: { text: string }) => say(text);
  const fetchOptions = { say, onSetup, download: true };
  const { models } = await pinnedModels(config, fetchOptions);
  const { data } = await pinnedData(config, fetchOptions);
  const found = [...models, ...data];
  const wanted = wantedBy(config, { file, known, may_be_none: found.length > 0 });
  const lines = found.map(({ name, files, bytes, directory, digest }) =>
    `${name}: ${counted(files.length)}, ${size(bytes)}, digest ${
      digest.slice(0, 12)
    }, in ${directory}`
  );
  for (const [i, files] of wanted.entries()) {
    const missing = await absent(files);
    try {
      await makeRoom(files, missing, free);
      await fetchAll(files, missing);
    } catch (error) {
      throw byHand(asFailure(error, files), await stillMissing(wanted.slice(i)));
    }
    lines.push(await line(files, missing));
  }
  return [...lines, `Run it: deno task rl run ${[file, ...overrides].map(quoted).join(" ")}`]
    .join("\n");
}

function wantedBy(
  config: Config,
  { file, known, may_be_none }: { file: string; known: ShippedFiles[]; may_be_none: boolean },
): ShippedFiles[] {
  const paths = namedFiles(config).map(({ text }) => text);
  const wanted = known.filter((files) => paths.some((path) => holds(files, path)));
  if (wanted.length > 0 || may_be_none) return wanted;
  throw new InvalidInputError(
    `Cannot fetch anything for ${file} because it reads nothing that 'fetch' can download. Fix: ` +
      "name " +
      known.map(({ dir }) => dir).join(" or ") +
      ", a model of the hub (OWNER/NAME), or its data sets (hf://datasets/OWNER/NAME)",
    { file, paths },
  );
}

/**
 * What a directory lacks. One that holds a file with different bytes is the user's, and lacks
 * nothing.
 */
async function absent({ files }: ShippedFiles): Promise<ShippedFile[]> {
  const found = await Promise.all(files.map(presence));
  return found.includes("different") ? [] : files.filter((_, i) => found[i] === "absent");
}

const total = (files: ShippedFile[]) => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** @throws {InfrastructureError} If the disk has no room. */
async function makeRoom(
  { name, dir }: ShippedFiles,
  missing: ShippedFile[],
  free: (dir: string) => number | null,
): Promise<void> {
  await Deno.mkdir(dir, { recursive: true });
  const [needed, available] = [total(missing), free(dir) ?? Infinity];
  if (needed <= available) return;
  throw new InfrastructureError(
    `Cannot fetch ${name} because the disk has no room: it takes ${
      size(needed)
    } in ${dir}, which has ${size(available)} free`,
    { dir, needed, left: available },
    { retryable: false },
  );
}

async function fetchAll({ name, dir }: ShippedFiles, missing: ShippedFile[]): Promise<void> {
  if (missing.length === 0) return;
  const say = tell;
  say(`fetching ${name}, ${size(total(missing))}, from ${dirname(missing[0]!.url)} to ${dir}`);
  for (const file of missing) await download(file, say);
}

async function line({ name, dir, files }: ShippedFiles, fetched: ShippedFile[]): Promise<string> {
  const found = await Promise.all(files.map(presence));
  const different = files.filter((_, i) => found[i] === "different").map(({ path }) =>
    basename(path)
  );
  if (different.length > 0) {
    return `${name}: ${dir} is unchanged because its ${
      different.join(", ")
    } differs from that of ${name}`;
  }
  return `${name}: ${counted(files.length)}, ${size(total(files))}, in ${dir}, ${
    fetched.length === 0 ? "already there" : "fetched"
  }`;
}

const counted = (files: number) => `${files} file${files === 1 ? "" : "s"}`;

/** A disk error is a failure like a network error; anything unexpected is rethrown. */
function asFailure(error: unknown, { name, dir }: ShippedFiles): InfrastructureError {
  if (error instanceof InfrastructureError) return error;
  const { code, message } = error as { code?: string; message: string };
  if (code === undefined) throw error;
  const text = `Cannot fetch ${name} because ${dir} cannot be written: ${message}`;
  return new InfrastructureError(text, { dir, code }, { cause: error, retryable: false });
}

async function stillMissing(sets: ShippedFiles[]): Promise<ShippedFiles[]> {
  const incomplete = await Promise.all(
    sets.map(async (set) => ({ ...set, files: await absent(set) })),
  );
  return incomplete.filter(({ files }) => files.length > 0);
}

/** The same failure, with advice for a person without a network. */
function byHand(error: InfrastructureError, missing: ShippedFiles[]): InfrastructureError {
  const parts = missing.map(({ dir, page, files }) =>
    `${files.map(({ path }) => basename(path)).join(", ")} of ${page} into ${dir}`
  );
  const fix =
    "Fix: run the same command again, which resumes where it stopped; name a mirror of the " +
    "hub (HF_ENDPOINT); " +
    `or download by hand ${parts.join(", and ")}`;
  return new InfrastructureError(`${error.message}. ${fix}`, error.facts, {
    cause: error,
    retryable: false,
  });
}
