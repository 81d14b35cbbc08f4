/**
 * Homes that older versions have recorded, as they left them. README.md tells how each was made.
 */

/** The commits that recorded them, oldest first. */
export const VERSIONS = ["13aad93", "672afe9", "35352cc"];

/** Homes are recorded and unpacked here, as a journal names files by their absolute paths. */
export const RECORDED = "/tmp/holdfast_recorded";

/** The plainest kernels, so that processors of different age add in the same order. */
export const NUMERICS = {
  ATEN_CPU_CAPABILITY: "default",
  MKL_CBWR: "COMPATIBLE",
  ONEDNN_MAX_CPU_ISA: "SSE41",
};

/**
 * Unpacks the home of a version, and removes it when `work` has ended. Another process that wants
 * it too waits.
 */
export async function withRecorded<T>(
  version: string,
  work: (home: string) => Promise<T>,
): Promise<T> {
  await Deno.mkdir(RECORDED, { recursive: true });
  const place = `${RECORDED}/${version}`;
  using lock = await Deno.open(`${place}.lock`, { write: true, create: true });
  await lock.lock(true);
  // Left by a test that was killed, if it is there.
  await Deno.remove(place, { recursive: true }).catch(() => {});
  try {
    const packed = new URL(`homes/${version}.tar.gz`, import.meta.url).pathname;
    const { success } = await new Deno.Command("tar", { args: ["-C", RECORDED, "-xzf", packed] })
      .output();
    if (!success) throw new Error(`Cannot unpack ${packed}`);
    return await work(`${place}/home`);
  } finally {
    await Deno.remove(place, { recursive: true });
  }
}
