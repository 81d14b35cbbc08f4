/**
 * The only place that removes directories. All other code calls it, which a lint rule
 * (`tests/lint/removals.ts`) enforces.
 */
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { isNothing } from "./derived_file.ts";
import { type DirectoryOwner, isOwnedBy, ownerOf } from "./directory_owner.ts";
import { RemovalRefusedError } from "../errors.ts";

type Removal = {
  /**
   * The tree that the path belongs to: a home, or another root. Its first-level folders
   * (`checkpoints`, `env`, ...) may be links that their owner made; below them none is followed.
   */
  home: string;
  /**
   * Pattern that the whole last name of the path must match: we may remove only what we named
   * ourselves.
   */
  named: RegExp;
  /**
   * The required owner of the run's directory, the second on the path from the home. null: it does
   * not belong to a run.
   */
  owner: DirectoryOwner | null;
  /** Only checks: true if it would be removed. */
  dry_run?: boolean;
  /**
   * Where it is moved before it is removed, in an existing directory of the same tree. Default: a
   * unique name next to it. Under a name that its owner knows, a killed removal can be undone.
   */
  aside?: { path: string; named: RegExp };
  /** Asked of what was moved aside; false: it is restored. */
  still?: (aside: string) => boolean;
};

/**
 * Where a removal has moved its directory: nobody else knows the name, so nobody can swap the
 * directory.
 */
export const REMOVING = /\.removing-[0-9a-f-]{36}/;
/** A first-level folder and a name in it. */
const DEPTH_MIN = 2;

/**
 * Removes a file or a directory with all its content, following no link. It is first moved aside
 * and checked once more: if something has replaced it meanwhile, that is restored. False: it did
 * not exist, or `still` said no. The next removal in the same directory finishes one that was killed.
 * @throws {RemovalRefusedError} If the path is not strictly inside the home, is or goes through a
 * link, has a different name, or is in a directory that belongs to another run or to none.
 */
export async function removeTree(
  path: string,
  { dry_run = false, ...removal }: Removal,
): Promise<boolean> {
  const parent = realParent(path, removal);
  if (parent === null) return false;
  const aside = asideOf(parent, removal);
  const { still } = removal;
  const found = moveAside(join(parent, basename(path)), { aside, still, dry_run });
  if (dry_run) return found;
  if (found) await removeMoved(aside);
  if (removal.aside) return found; // Its owner finishes those that were killed.
  for (const { name } of [...Deno.readDirSync(parent)]) {
    if (isNamed(name, REMOVING)) await removeMoved(join(parent, name));
  }
  return found;
}

/** Where a removal moves a path of this directory. */
function asideOf(parent: string, { aside, ...removal }: Omit<Removal, "dry_run">): string {
  if (aside === undefined) return join(parent, `.removing-${crypto.randomUUID()}`);
  const folder = realParent(aside.path, { ...removal, named: aside.named });
  if (folder === null) throw refused(aside.path, "its directory does not exist");
  return join(folder, basename(aside.path));
}

/** The directory that contains the path, resolved; null if it does not exist. */
function realParent(path: string, { home, named, owner }: Removal): string | null {
  const full = resolve(path);
  const name = basename(full);
  const parts = relative(resolve(home), full).split(sep);
  if (home === "" || parts.length < DEPTH_MIN || parts.includes("..") || parts.includes("")) {
    throw refused(path, `it is not inside '${home}'`);
  }
  if (!isNamed(name, named)) {
    throw refused(path, `'${name}' is not a name that Holdfast uses`);
  }
  try {
    const folder = Deno.realPathSync(join(resolve(home), parts[0]!));
    const expected = join(folder, ...parts.slice(1, -1));
    const found = Deno.realPathSync(dirname(full));
    if (found !== expected) {
      throw refused(path, `it is reached through a link: its real path is '${found}'`);
    }
    if (owner !== null) {
      refuseOthers(path, { home, folder: parts[0]!, dir: join(folder, parts[1]!), owner });
    }
    return found;
  } catch (error) {
    if (isNothing(error)) return null;
    throw error;
  }
}

type Place = { home: string; folder: string; dir: string; owner: DirectoryOwner };

function refuseOthers(path: string, { home, folder, dir, owner }: Place): void {
  if (!exists(dir)) return; // A missing path is not an error.
  const found = ownerOf(dir);
  if (found === null) throw refused(path, `'${dir}' does not say which run it belongs to`);
  if (isOwnedBy(found, owner, { home, folder })) return;
  throw refused(
    path,
    `'${dir}' belongs to run '${found.run}' of ${found.place}, recorded in journal ${found.store}`,
  );
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}

type Moving = Pick<Removal, "still" | "dry_run"> & { aside: string };

/**
 * Renames it. The inode reveals a swap by another process between the two checks. False: it does
 * not exist, or was restored because it is wanted.
 */
function moveAside(path: string, { aside, still = () => true, dry_run }: Moving): boolean {
  try {
    const before = Deno.lstatSync(path);
    if (before.isSymlink) throw refused(path, "it is a link");
    if (dry_run) return true;
    Deno.renameSync(path, aside);
    const after = Deno.lstatSync(aside);
    const swapped = after.ino !== before.ino || after.dev !== before.dev ||
      Deno.realPathSync(aside) !== aside;
    if (!swapped && still(aside)) return true;
    Deno.renameSync(aside, path);
    if (!swapped) return false;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
  throw refused(path, "something else has replaced it");
}

async function removeMoved(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // Another removal finished it.
  }
}

/** Whether a whole name matches a pattern. */
export function isNamed(name: string, pattern: RegExp): boolean {
  return new RegExp(`^(?:${pattern.source})$`).test(name);
}

function refused(path: string, why: string): RemovalRefusedError {
  return new RemovalRefusedError(
    `Cannot remove '${path}' because ${why}. Fix: inspect it, and remove it by hand if you do ` +
      "not need it",
    { path, why },
  );
}
