/**
 * Homes whose every file says whose it is and whether it may go, what strangers do to them, and
 * what of them was removed by `gc` or by a run's stages.
 */
import { ok } from "node:assert/strict";
import { z } from "zod";
import { graph, OWNER_FILE, processOwner, type Store } from "../../../engine/mod.ts";
import { claimDirectories, collectGarbage, createRun, Home } from "../../../runs/mod.ts";
import { scratch } from "../../flows/fixtures.ts";
import { removeByStage, type RemovingStage } from "../../flows/stages/removing_stages.ts";

const NOTHING = graph("nothing", z.object({}), (g) => g.constant(1));
/** Homes that are there from the beginning; those after them are copies. */
const HOMES = 2;
const VERSION = "0123456789ab";
/** Of publications: as many as a run keeps, and one. */
const WEIGHTS = ["0", "1", "2", "3"].map((digit) => `${digit}123456789abcdef`);

/**
 * A file's word about itself. `keep`: it must never go; else only its own home's and journal's `gc`
 * may remove it.
 */
type Tag = { n: number; keep: boolean; home: number; store: string; run: string };

/** What is done to the homes, or by them. Numbers are taken modulo what there is. */
export type Step =
  | { do: "gc"; home: number; shared: boolean; logs: boolean; dry_run: boolean }
  | { do: "stage"; home: number; shared: boolean; stage: RemovingStage; run: number }
  | { do: "run"; home: number; shared: boolean; run: string }
  | {
    do: "link_folder";
    home: number;
    folder: "runs" | "checkpoints" | "logs" | "artifacts";
    to: number;
  }
  | {
    do: "link_run" | "swap" | "copy_run";
    home: number;
    folder: "runs" | "checkpoints" | "logs";
    from: number;
    to: number;
  }
  | { do: "link_inside"; home: number; folder: "runs" | "checkpoints"; run: number; to: number }
  | {
    do: "lose";
    home: number;
    what: "nonce" | "stores" | "journal" | "owner" | "run" | "folder";
    at: number;
  }
  | { do: "garble"; home: number; what: "nonce" | "stores" | "owner"; at: number }
  | { do: "move" | "copy"; home: number };

type Opened = { dir: string; private: Home | null };

export class World {
  readonly root: string;
  readonly homes: Opened[] = [];
  /** What has removed anything so far. */
  readonly removed = new Set<string>();
  #shared: Store;
  readonly #newShared: () => Store;
  #count = 0;

  private constructor(root: string, newShared: () => Store) {
    this.root = root;
    this.#newShared = newShared;
    this.#shared = newShared();
  }

  /**
   * Two homes, each with runs of these ids in a journal of its own and one in the journal that they
   * share; and a directory beside them.
   */
  static async make(newShared: () => Store, ids: readonly string[]): Promise<World> {
    const world = new World(await scratch(), newShared);
    for (const n of [0, 1]) {
      world.homes.push({ dir: `${world.root}/home${n}`, private: null });
      await Deno.mkdir(`${world.root}/home${n}`);
      for (const run of ids) await world.#run(n, { shared: false, run });
      await world.#run(n, { shared: true, run: `shared${n}` });
    }
    const outside = { home: -1, store: "", run: "" };
    for (const name of ["a", `000001-${VERSION}-1-1`, ...WEIGHTS]) {
      world.#file(`${world.root}/outside/${name}`, outside);
    }
    return world;
  }

  async dispose(): Promise<void> {
    for (const { private: home } of this.homes) await home?.close();
    await Deno.remove(this.root, { recursive: true });
  }

  /** Takes one step. After one that removes: nothing went but what might. */
  async take(step: Step): Promise<void> {
    const n = step.home % this.homes.length;
    if (step.do === "gc") return await this.#collect(n, step);
    if (step.do === "stage") return await this.#stage(n, step);
    if (step.do === "run") return await this.#run(n, step).catch(unlessRefused);
    try {
      await this.#disturb(n, step);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.AlreadyExists)) {
        throw error;
      }
    }
  }

  #open(n: number, shared: boolean): Home {
    const { dir } = this.homes[n]!;
    this.homes[n]!.private ??= Home.open(dir);
    const { artifacts } = this.homes[n]!.private!;
    return shared
      ? new Home(dir, { store: this.#shared, artifacts, postgres: "postgres://db/shared" })
      : this.homes[n]!.private!;
  }

  async #collect(n: number, { shared, logs, dry_run }: Step & { do: "gc" }): Promise<void> {
    const home = this.#open(n, shared);
    const store = await home.store.identity().then(({ id }) => id);
    const old = { younger_than_ms: -60_000, ...(logs && { logs_older_than_ms: -60_000 }) };
    const may = (tag: Tag) =>
      !dry_run && !tag.keep && tag.home === n && (tag.store === store || tag.run === "");
    await this.#removing(`gc of home ${n} with journal ${store}`, may, async () => {
      await collectGarbage(home, { ...old, dry_run }).catch(unlessRefused);
    });
  }

  async #stage(n: number, { shared, stage, run }: Step & { do: "stage" }): Promise<void> {
    const home = this.#open(n, shared);
    const store = await home.store.identity().then(({ id }) => id);
    const heads = await home.store.heads();
    const head = heads[run % Math.max(1, heads.length)];
    if (!head) return;
    const may = (tag: Tag) =>
      !tag.keep && tag.home === n && tag.store === store && tag.run === head.id;
    await this.#removing(
      `stage ${stage} of run ${head.id} of home ${n} with journal ${store}`,
      may,
      async () => {
        await removeByStage(home, head, stage).catch(unlessNowhere).catch(unlessRefused);
      },
    );
  }

  /** Does something, after which only files are gone that might. */
  async #removing(
    what: string,
    may: (tag: Tag) => boolean,
    work: () => Promise<void>,
  ): Promise<void> {
    const before = this.#tags();
    await work();
    const after = this.#tags();
    for (const [at, tag] of before) {
      ok(after.has(at) || may(tag), `${what} removed ${JSON.stringify(tag)}`);
      if (!after.has(at)) this.removed.add(what.split(" of ")[0]!);
    }
  }

  /**
   * A run that is done, with all that runs leave: what is needed, what came to nothing, and what a
   * person has put there.
   */
  async #run(n: number, { shared, run: id }: { shared: boolean; run: string }): Promise<void> {
    const home = this.#open(n, shared);
    const head = await createRun(home, NOTHING, { config: {}, entry: "", id });
    await claimDirectories(home, head, { make: true });
    const { id: store } = await home.store.identity();
    const { epoch } = (await home.store.claim(id, processOwner(), { lease_ms: 60_000 })).head;
    const of = { home: n, store, run: id };
    const [run, checkpoints, logs] = [home.runDir(id), home.checkpointsDir(id), home.logsDir(id)];
    const saved = `${checkpoints}/000001-${VERSION}-1-1`;
    for (
      const kept of [
        saved,
        `${checkpoints}/set_aside/000003-${VERSION}-1-1`,
        `${run}/final`,
        `${logs}/attempt_${epoch}`,
      ]
    ) {
      this.#file(kept, of);
    }
    for (const dir of [run, checkpoints, logs, `${run}/publications`]) {
      this.#file(`${dir}/mine`, of);
    }
    const leftovers = [
      `${checkpoints}/000002-${VERSION}-1-1`,
      `${checkpoints}/.universal.000001-${VERSION}-1-1`,
    ];
    const weights = [
      ...WEIGHTS.map((name) => `${run}/publications/${name}`),
      ...[WEIGHTS[0], `.${WEIGHTS[0]}.7.old`].map((name) => `${run}/references/${name}`),
    ];
    for (const dir of [...leftovers, ...weights, `${run}/verify-01234567`, `${logs}/attempt_0`]) {
      this.#file(dir, of, false);
    }
    const wanted = await this.#artifact(home, { ...of, keep: true });
    await this.#artifact(home, { ...of, run: "", keep: false });
    const note = {
      version: VERSION,
      dir: saved,
      digest: "",
      world_size: 1,
      files: [],
      number: 1,
      round: 1,
      metric: null,
    };
    await home.store.append(id, epoch, [
      { kind: "note/checkpoint", key: VERSION, value: JSON.stringify(note) },
      { kind: "result", key: "x", value: JSON.stringify(wanted) },
    ]);
    await home.store.finish(id, epoch, "done");
  }

  /** Writes DIR/tag. */
  #file(dir: string, of: Omit<Tag, "n" | "keep">, keep = true): void {
    Deno.mkdirSync(dir, { recursive: true });
    Deno.writeTextFileSync(`${dir}/tag`, JSON.stringify({ n: this.#count++, keep, ...of }));
  }

  async #artifact(home: Home, tag: Omit<Tag, "n">) {
    const ref = await home.artifacts.put(
      new TextEncoder().encode(JSON.stringify({ n: this.#count++, ...tag })),
    );
    return ref;
  }

  /**
   * All tags there are by the inodes of their files: one that was moved is the same. A copied
   * artifact is where it lies.
   */
  #tags(): Map<string, Tag> {
    const found = new Map<string, Tag>();
    const walk = (dir: string) => {
      for (const { name, isDirectory, isFile } of Deno.readDirSync(dir)) {
        const path = `${dir}/${name}`;
        if (isDirectory) walk(path);
        const isArtifact = /^[0-9a-f]{64}$/.test(name);
        if (!isFile || !(name === "tag" || isArtifact)) continue;
        const tag = JSON.parse(Deno.readTextFileSync(path)) as Tag;
        const copy = this.homes.findIndex((home, at) =>
          at >= HOMES && path.startsWith(`${home.dir}/`)
        );
        if (isArtifact && copy >= 0) tag.home = copy;
        found.set(`${Deno.statSync(path).ino} ${tag.n}`, tag);
      }
    };
    walk(this.root);
    return found;
  }

  async #disturb(n: number, step: Exclude<Step, { do: "gc" | "stage" | "run" }>): Promise<void> {
    const { dir } = this.homes[n]!;
    switch (step.do) {
      case "link_folder": {
        const place = `${dir}/${step.folder}`;
        const target = step.to % (this.homes.length + 1);
        if (target === n) return;
        const to = target === this.homes.length
          ? `${this.root}/outside`
          : `${this.homes[target]!.dir}/${step.folder}`;
        await Deno.rename(place, `${this.root}/moved${this.#count++}`);
        return await Deno.symlink(to, place);
      }
      case "link_run":
      case "swap":
      case "copy_run":
        return await this.#move(dir, step);
      case "link_inside":
        return await this.#linkInside(dir, step);
      case "lose":
        return await this.#lose(n, step);
      case "garble": {
        const at = step.what === "owner"
          ? `${entry(`${dir}/checkpoints`, step.at)}/${OWNER_FILE}`
          : `${dir}/${step.what}`;
        return await Deno.writeTextFile(at, ["", "{", '{"home":"x"}', "\0"][step.at % 4]!);
      }
      case "move":
        await this.#close(n);
        this.homes[n]!.dir = `${this.root}/moved_home${this.#count++}`;
        return await Deno.rename(dir, this.homes[n]!.dir);
      case "copy":
        return await this.#copy(n);
    }
  }

  async #move(
    dir: string,
    { do: what, folder, from, to }: Step & { do: "link_run" | "swap" | "copy_run" },
  ): Promise<void> {
    const [one, other] = [entry(`${dir}/${folder}`, from), entry(`${dir}/${folder}`, to)];
    if (one === other) return;
    if (what === "copy_run") return await this.#copyTree(one, `${one}-copy${this.#count++}`, null);
    const aside = `${this.root}/aside${this.#count++}`;
    await Deno.rename(one, aside);
    if (what === "link_run") return await Deno.symlink(other, one);
    await Deno.rename(other, one);
    await Deno.rename(aside, other);
  }

  /**
   * A link where a checkpoint or a publication may lie, or in place of the directory that holds
   * publications.
   */
  async #linkInside(dir: string, { folder, run, to }: Step & { do: "link_inside" }): Promise<void> {
    const folderEntry = entry(`${dir}/${folder}`, run);
    const other = entry(`${this.homes[to % this.homes.length]!.dir}/${folder}`, to);
    const weights = `${folderEntry}/publications`;
    if (folder === "checkpoints") {
      return await Deno.symlink(other, `${folderEntry}/000009-${VERSION}-1-1`);
    }
    if (run % 2 === 0) {
      return await Deno.symlink(`${this.root}/outside/a`, `${weights}/fedcba9876543210`);
    }
    await Deno.rename(weights, `${this.root}/moved${this.#count++}`);
    await Deno.symlink(to % 2 === 0 ? `${this.root}/outside` : `${other}/publications`, weights);
  }

  async #lose(n: number, { what, at }: Step & { do: "lose" }): Promise<void> {
    const { dir } = this.homes[n]!;
    const away = `${this.root}/lost${this.#count++}`;
    const folders = ["runs", "checkpoints", "logs"];
    const folder = `${dir}/${folders[at % folders.length]}`;
    if (what === "nonce" || what === "stores") return await Deno.rename(`${dir}/${what}`, away);
    if (what === "owner") return await Deno.rename(`${entry(folder, at)}/${OWNER_FILE}`, away);
    if (what === "run") return await Deno.rename(entry(folder, at), away);
    if (what === "folder") return await Deno.rename(folder, away);
    if (at % 2 === 0) return void (this.#shared = this.#newShared());
    await this.#close(n);
    for (const name of ["", "-wal", "-shm"]) {
      await Deno.remove(`${dir}/holdfast.db${name}`).catch(() => {});
    }
  }

  async #close(n: number): Promise<void> {
    await this.homes[n]!.private?.close();
    this.homes[n]!.private = null;
  }

  /**
   * As `cp -a` does, but the copies' tags say that they are the copy's. Its runs are resumed at
   * once: until then nothing tells their directories from those that their home moved and linked.
   */
  async #copy(n: number): Promise<void> {
    await this.#close(n);
    const dir = `${this.root}/copy${this.#count++}`;
    this.homes.push({ dir, private: null });
    const copy = this.homes.length - 1;
    await this.#copyTree(this.homes[n]!.dir, dir, { from: n, to: copy });
    for (const shared of [false, true]) {
      const home = this.#open(copy, shared);
      for (const head of await home.store.heads()) {
        await claimDirectories(home, head, { make: false }).catch(unlessRefused);
      }
      await home.rememberStore();
    }
  }

  async #copyTree(
    from: string,
    to: string,
    homes: { from: number; to: number } | null,
  ): Promise<void> {
    await Deno.mkdir(to);
    for (const { name, isDirectory, isSymlink } of Deno.readDirSync(from)) {
      const [source, target] = [`${from}/${name}`, `${to}/${name}`];
      if (isDirectory) await this.#copyTree(source, target, homes);
      else if (isSymlink) await Deno.symlink(await Deno.readLink(source), target);
      else if (name === "tag") {
        const tag = JSON.parse(await Deno.readTextFile(source)) as Tag;
        // A copy that a person has made.
        const changes = homes && tag.home === homes.from ? { home: homes.to } : { keep: true };
        await Deno.writeTextFile(target, JSON.stringify({ ...tag, n: this.#count++, ...changes }));
      } else await Deno.copyFile(source, target);
    }
  }
}

/** One of the entries of a directory, by a number. */
function entry(dir: string, at: number): string {
  const names = [...Deno.readDirSync(dir)].map(({ name }) => name).sort();
  return names.length === 0 ? `${dir}/none` : `${dir}/${names[at % names.length]}`;
}

/** A refusal is an answer; it has removed nothing that it must not, which is what is looked at. */
function unlessRefused(error: Error & { code?: string }): void {
  // Two folders that are links to each other: nothing can be read there.
  if (error instanceof Deno.errors.FilesystemLoop) return;
  if (!["invalid_input", "infrastructure"].includes(error.code ?? "")) throw error;
  ok(/^Cannot .*(because|as) /s.test(error.message), error.message);
}

/** Where a run's directories are gone, are files or lead nowhere, its stages cannot write. */
function unlessNowhere(error: unknown): void {
  const { NotFound, AlreadyExists, NotADirectory } = Deno.errors;
  if (
    !(error instanceof NotFound || error instanceof AlreadyExists || error instanceof NotADirectory)
  ) throw error;
}
