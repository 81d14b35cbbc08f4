/** A place in a run: `3`, or `step/3` in the loop called step. Null: the text is neither. */
export function loopAndRound(text: string): { loop?: string; round: number } | null {
  const [, loop, round] = /^(?:([^/]+)\/)?(\d+)$/.exec(text) ?? [];
  if (round === undefined) return null;
  return { ...(loop !== undefined && { loop }), round: Number(round) };
}
