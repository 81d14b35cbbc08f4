import { createHash } from "node:crypto";

/**
 * A request for a repository or one of its files. `model`: its name, of a data set with `datasets/`
 * before it. `path`: null for the list of its files.
 */
export type HubRequest = { method: string; model: string; revision: string; path: string | null };

/** How a {@linkcode FakeModelHub} behaves. */
export type FakeModelHubOptions = {
  /** Answers in place of the hub, as a network or a mirror that fails. undefined: it answers. */
  intercept?: (
    request: HubRequest,
    answer: () => Response,
  ) => Response | Promise<Response> | undefined;
};

/** One file at one commit. `etag`: the hash by which the hub names it. */
type Blob = { bytes: Uint8Array<ArrayBuffer>; etag: string; is_large: boolean };
type Commit = Map<string, Blob>;
type Repository = {
  refs: Map<string, string>;
  commits: Map<string, Commit>;
  /** Tokens that may read its files; null: everybody. */
  tokens: string[] | null;
  /** Whether those without a token learn that it exists. */
  hidden: boolean;
};

/**
 * A model hub on this machine, in the layout of the Hugging Face Hub, for tests without a network:
 * name its `url` by `HF_ENDPOINT`. Models and data sets (`datasets/OWNER/NAME`) may have several
 * revisions, be gated or be hidden.
 *
 * @example
 * ```ts
 * import { FakeModelHub } from "holdfast/testing";
 *
 * await using hub = new FakeModelHub();
 * hub.put("owner/tiny", { "config.json": "{}" });
 * const answer = await fetch(`${hub.url}/owner/tiny/resolve/main/config.json`);
 * console.log(await answer.text());
 * ```
 */
export class FakeModelHub implements AsyncDisposable {
  /** Every request, as `METHOD MODEL@REVISION PATH`, and the token that came with it. */
  readonly asked: { line: string; token: string | null }[] = [];
  readonly #repositories = new Map<string, Repository>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #options: FakeModelHubOptions;

  /** Listens at a free port of the loopback. */
  constructor(options: FakeModelHubOptions = {}) {
    this.#options = options;
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#respond(request),
    );
  }

  /** What `HF_ENDPOINT` names. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Requests as lines, without tokens. */
  get lines(): string[] {
    return this.asked.map(({ line }) => line);
  }

  /**
   * A commit with these files at `revision`, in place of the one that was there. Returns it.
   */
  put(
    model: string,
    files: Record<string, string | Uint8Array>,
    options: { revision?: string; tokens?: string[]; hidden?: boolean } = {},
  ): string {
    const { revision = "main", tokens = null, hidden = false } = options;
    const known = this.#repositories.get(model);
    const repository = { refs: known?.refs ?? new Map(), commits: known?.commits ?? new Map() };
    this.#repositories.set(model, { ...repository, tokens, hidden });
    const commit: Commit = new Map(
      Object.entries(files).map(([path, content]) => {
        const bytes = new Uint8Array(
          typeof content === "string" ? new TextEncoder().encode(content) : content,
        );
        const is_large = /\.(safetensors|parquet)$/.test(path);
        const etag = is_large
          ? hash("sha256", [bytes])
          : hash("sha1", [`blob ${bytes.length}\0`, bytes]);
        return [path, { bytes, etag, is_large }];
      }),
    );
    const lines = [...commit].map(([path, { etag }]) => `${etag}  ${path}\n`);
    const id = hash("sha1", [`${model}\n`, ...lines]);
    repository.commits.set(id, commit);
    repository.refs.set(revision, id);
    return id;
  }

  /** Stops listening; from then on the hub cannot be reached. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #respond(request: Request): Promise<Response> {
    const hubCall = hubRequest(request);
    if (hubCall === null) return failed(404, "EntryNotFound");
    const { method, model, revision, path } = hubCall;
    const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
    this.asked.push({ line: `${method} ${model}@${revision} ${path ?? ""}`.trimEnd(), token });
    const answer = () => this.#answer(hubCall, { token, range: request.headers.get("range") });
    return await (this.#options.intercept?.(hubCall, answer) ?? answer());
  }

  #answer(
    { method, model, revision, path }: HubRequest,
    { token, range }: { token: string | null; range: string | null },
  ): Response {
    const repository = this.#repositories.get(model);
    const may = repository?.tokens === null || repository?.tokens.includes(token ?? "") === true;
    if (repository === undefined || (repository.hidden && !may)) {
      // The hub does not tell strangers which models exist.
      return token === null ? failed(401, null) : failed(404, "RepoNotFound");
    }
    const id = repository.refs.get(revision) ?? revision;
    const commit = repository.commits.get(id);
    if (commit === undefined) return failed(404, "RevisionNotFound");
    if (path === null) {
      const siblings = [...commit].map(([rfilename, { bytes, etag, is_large }]) => ({
        rfilename,
        size: bytes.length,
        blobId: is_large ? hash("sha1", [etag]) : etag,
        lfs: is_large ? { sha256: etag, size: bytes.length, pointerSize: 134 } : undefined,
      }));
      return Response.json({ id: model.replace(/^datasets\//, ""), sha: id, siblings });
    }
    if (!may) return failed(token === null ? 401 : 403, "GatedRepo");
    const blob = commit.get(path);
    return blob === undefined
      ? failed(404, "EntryNotFound", id)
      : fileResponse(blob, { commit: id, method, range });
  }
}

function hubRequest({ method, url }: Request): HubRequest | null {
  const { pathname } = new URL(url);
  const [, kind, name, revision] =
    /^\/api\/(models|datasets)\/([^/]+\/[^/]+)\/revision\/([^/]+)$/.exec(pathname) ?? [];
  if (kind !== undefined) {
    const model = kind === "models" ? name! : `${kind}/${name}`;
    return { method, model, revision: decodeURIComponent(revision!), path: null };
  }
  const [, model, at, path] =
    /^\/((?:datasets\/)?[^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
  if (model === undefined) return null;
  return { method, model, revision: decodeURIComponent(at!), path: decodeURIComponent(path!) };
}

function hash(algorithm: "sha1" | "sha256", parts: (string | Uint8Array)[]): string {
  const hasher = createHash(algorithm);
  for (const part of parts) hasher.update(part);
  return hasher.digest("hex");
}

function failed(status: number, code: string | null, commit?: string): Response {
  const headers = new Headers({ "X-Error-Message": "the hub refuses" });
  if (code !== null) headers.set("X-Error-Code", code);
  if (commit !== undefined) headers.set("X-Repo-Commit", commit);
  return new Response("", { status, headers });
}

function fileResponse(
  { bytes, etag }: Blob,
  { commit, method, range }: { commit: string; method: string; range: string | null },
): Response {
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const headers = {
    "ETag": `"${etag}"`,
    "X-Repo-Commit": commit,
    "Accept-Ranges": "bytes",
    "Content-Length": String(bytes.length - from),
    ...(from > 0 && { "Content-Range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` }),
  };
  const status = from > 0 ? 206 : 200;
  return new Response(method === "HEAD" ? null : bytes.subarray(from), { status, headers });
}
