import { z } from "zod";
import type { DatasetPart } from "../data/mod.ts";
import { InfrastructureError, InvalidInputError } from "../engine/mod.ts";
import { PYTHON_ROOT } from "./processes/local_launcher.ts";
import { TextLineStream } from "./processes/text_line_stream.ts";
import { workerEnvironment } from "./processes/worker_environment.ts";

/** A file of a repository at one commit. `etag`: its hash at the hub (sha256, or git's sha1). */
const HubFile = z.strictObject({ path: z.string(), bytes: z.int(), etag: z.string() });

const /** @internal */ fetchedFilesSchema = z.strictObject({
  name: z.string().describe("With the commit."),
  directory: z.string().describe("In the cache of this host."),
  digest: z.string().describe("Of all files."),
  bytes: z.int(),
  files: z.array(HubFile),
});
/** A model of the hub, or a part of a data set, at one commit. */
export type FetchedFiles = z.infer<typeof fetchedFilesSchema>;
/** Schema of {@linkcode FetchedFiles}. */
export const FetchedFiles: typeof fetchedFilesSchema = fetchedFilesSchema;

/**
 * What to find. `part`: of a data set; absent: it is a model. `code`: with a model's own Python
 * files. `recorded`: the files that a run recorded; the hub is then asked only for those that the
 * cache lacks.
 */
export type WantedFiles = {
  name: string;
  code: boolean;
  part?: DatasetPart;
  recorded: FetchedFiles["files"] | null;
};

/** Lines of the Python process. */
const Line = z.union([
  z.strictObject({ say: z.string() }),
  z.strictObject({ failure: z.string(), is_input: z.boolean() }),
  z.strictObject({ found: z.array(FetchedFiles) }),
]);
type Ending = Exclude<z.infer<typeof Line>, { say: string }>;

type FetchOptions = {
  /** Whether files are fetched; otherwise names only get their commits. */
  download: boolean;
  say?: (text: string) => void;
  /** In addition to this process's environment. */
  env?: Record<string, string>;
  signal?: AbortSignal;
};

/**
 * Finds models and data sets at the hub, and fetches what its cache on this host lacks. The only
 * process that receives the hub's token. Names of one revision get one commit. Rejects with the
 * signal's reason if the signal ended it.
 * @throws {InvalidInputError} If the hub has no such repository, revision or part, or does not give
 *   it.
 * @throws {InfrastructureError} If neither the hub nor the cache can give it, or there is no room.
 */
export async function fetchFromHub(
  python: string,
  wanted: WantedFiles[],
  { download, say = () => {}, env, signal }: FetchOptions,
): Promise<FetchedFiles[]> {
  signal?.throwIfAborted();
  const child = new Deno.Command(python, {
    args: ["-m", "holdfast_worker.model_hub.fetch"],
    clearEnv: true,
    env: { ...workerEnvironment({ hub_token: true }), PYTHONPATH: PYTHON_ROOT, ...env },
    signal,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    detached: true, // The terminal's Ctrl-C does not reach it.
  }).spawn();
  // Open until the answer is here: the process ends with this one.
  const stdin = child.stdin.getWriter();
  const sent = stdin.write(new TextEncoder().encode(`${JSON.stringify({ wanted, download })}\n`))
    .catch(() => {}); // A process that ended without reading says why itself.
  const [ending, errors] = await Promise.all([
    endingOf(child.stdout, say),
    new Response(child.stderr).text(),
  ]);
  const { code } = await child.status;
  await sent;
  await stdin.close().catch(() => {});
  if (ending === null) {
    signal?.throwIfAborted(); // The signal ended it.
    const last = errors.trim().split("\n").at(-1) || `exit code ${code}`;
    throw new InfrastructureError(
      `Cannot fetch from the hub with ${python} because its process ended: ${last}. Fix: try again; in ` +
        "a custom environment, update huggingface_hub",
      { python, code },
      { retryable: false },
    );
  }
  if ("found" in ending) return ending.found;
  const facts = { names: wanted.map(({ name }) => name) };
  throw ending.is_input
    ? new InvalidInputError(ending.failure, facts)
    : new InfrastructureError(ending.failure, facts, { retryable: false });
}

async function endingOf(
  stdout: ReadableStream<Uint8Array>,
  say: (text: string) => void,
): Promise<Ending | null> {
  let ending: Ending | null = null;
  const lines = stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
  for await (const text of lines) {
    if (text.trim() === "") continue;
    const line = Line.parse(JSON.parse(text));
    if ("say" in line) say(line.say);
    else ending = line;
  }
  return ending;
}
