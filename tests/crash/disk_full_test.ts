import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { at, type Place, recorded, rl, SMALL } from "./runs.ts";
import { assertEqualEnd } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/** Mounting needs root; where it is not given, that is said, except in CI. */
const why = await mounted("/tmp", { size: "1m", work: () => Promise.resolve() }).then(
  () => null,
  (error) => error.message,
);
const ignore = why !== null && Deno.env.get("CI") !== "true";
if (ignore) console.log(`the tests of a full disk are left out: ${why}`);

type Disk = {
  size: string;
  work: (dir: string, enlarge: (size: string) => Promise<void>) => Promise<void>;
};

/**
 * Calls `work` with a file system of its own that holds `size`, in a directory made in `parent`.
 */
async function mounted(parent: string, { size, work }: Disk): Promise<void> {
  const dir = await Deno.makeTempDir({ dir: parent, prefix: "holdfast-disk-" });
  try {
    await command("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", dir);
    try {
      await work(dir, (larger) => command("mount", "-o", `remount,size=${larger}`, dir));
    } finally {
      await command("umount", "-l", dir);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function command(name: string, ...args: string[]): Promise<void> {
  const { code, stderr } = await new Deno.Command(name, {
    args,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  })
    .output();
  strictEqual(code, 0, `${name} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

/** Its recoveries: what was loaded or trained again. */
async function redone(place: Place, run: string): Promise<string[]> {
  return (await recorded(place, run)).rows.filter(({ kind }) => kind === "recovery").map((
    { value },
  ) => value);
}

/**
 * What of a home is on the disk that fills up, and how small that is. A checkpoint of this model
 * has 4 MiB.
 */
const DISKS = [
  { what: "checkpoints", size: "3m" },
  { what: "", size: "9m" }, // The whole home, with the journal.
];

for (const { what, size } of DISKS) {
  Deno.test({
    name: `a full disk under ${
      what || "the whole home"
    } stops the run with its cause, and with room it ends equal`,
    ignore,
    fn: async () => {
      const against = await sharedUndisturbed(SMALL);
      await mounted("/tmp", {
        size,
        work: async (disk, enlarge) => {
          const home = what === "" ? disk : await Deno.makeTempDir({ prefix: "holdfast-crash-" });
          if (what !== "") await Deno.symlink(disk, `${home}/${what}`);
          const place = { home, store: null };
          const stopped = await rl(["run", SMALL, ...at(place), "--id", "full"], {});
          strictEqual(stopped.code, 3, stopped.output);
          ok(/no space|disk is full|full disk/i.test(stopped.output), stopped.output);
          const notice = stopped.output.split("\n").find((line) => line.includes("disk is full")) ??
            "";
          ok(notice.includes(`Cannot write '${home}/${what}`), stopped.output);
          deepStrictEqual(await redone(place, "full"), []);
          await enlarge("200m");
          const resumed = await rl(["resume", "full", ...at(place)], {});
          strictEqual(resumed.code, 0, `${stopped.output}\n${resumed.output}`);
          await assertEqualEnd(place, "full", against);
          if (what !== "") await Deno.remove(home, { recursive: true });
        },
      });
    },
  });
}
