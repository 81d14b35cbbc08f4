import type { Draw, Slab } from "../data/mod.ts";

/**
 * Cuts draws into slabs, in draw order: by `slab_groups`, else into one slab per *configured*
 * sampler. The number of living samplers must not matter, because which groups share a batch
 * determines their bits.
 */
export function cutSlabs(
  draws: readonly Draw[],
  options: { slab_groups: number | null; samplers: number },
): Slab[] {
  const ordered = [...draws].sort((a, b) => a.draw - b.draw);
  const size = options.slab_groups ?? Math.max(1, Math.ceil(ordered.length / options.samplers));
  return Array.from({ length: Math.ceil(ordered.length / size) }, (_, i) => {
    const part = ordered.slice(i * size, (i + 1) * size);
    return { id: `${part[0]!.draw}-${part.at(-1)!.draw}`, draws: part };
  });
}
