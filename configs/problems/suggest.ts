import { closest, distance } from "fastest-levenshtein";
import { peerHint } from "../settings/peer_names.ts";

/** ` (did you mean X?)` for a name close to one of these, else nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  if (known.length === 0) return "";
  const near = closest(name, known);
  // Two swapped letters are a distance of two, so names of four letters must allow it.
  const allowed = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3));
  const close = distance(name, near) <= allowed;
  return close ? ` (did you mean ${near}?)` : "";
}

/**
 * For a key that is unknown in `block`: our name for a peer's name, else a close name here, else
 * the same name further inside, else elsewhere.
 */
export function suggestKey(
  key: string,
  { block, here, everywhere }: {
    block: string;
    here: readonly string[];
    everywhere: readonly string[];
  },
): string {
  const peers = peerHint(key, everywhere);
  if (peers !== "") return peers;
  const near = didYouMean(key, here);
  if (near !== "") return near;
  const same = everywhere.filter((path) => path === key || path.endsWith(`.${key}`));
  const inside = same.filter((path) => path.startsWith(`${block}.`));
  const one = [inside, same].find((paths) => paths.length === 1);
  return one === undefined ? "" : ` (did you mean ${one[0]}?)`;
}
