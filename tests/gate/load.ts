/** CPU seconds so far: of all processes of this machine, and of this one's children that ended. */
type CpuSeconds = { machine: number; children: number };

/** In ticks of 10 ms, which Linux promises to programs (proc(5), USER_HZ). */
const TICKS_PER_S = 100;
/** Of a core. More means that others decide how long something takes. */
const OTHERS_MAX = 0.25;

export function cpuSeconds(): CpuSeconds {
  const [, user, nice, system, , , irq, softirq, steal] = Deno.readTextFileSync("/proc/stat")
    .split("\n")[0]!.split(/\s+/).map(Number);
  const stat = Deno.readTextFileSync("/proc/self/stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  const [cutime, cstime] = [fields[13]!, fields[14]!]; // Fields 16 and 17.
  const machine = user! + nice! + system! + irq! + softirq! + steal!;
  return { machine: machine / TICKS_PER_S, children: (cutime + cstime) / TICKS_PER_S };
}

/** Of all that was computed meanwhile, the part of this process's children. */
export function childrenPart(before: CpuSeconds, after: CpuSeconds): number {
  return Math.min(1, (after.children - before.children) / (after.machine - before.machine));
}

/** Of its time, what a process counts as running if `load` processes share `cores`. */
export function shareOf(load: number, cores: number): number {
  return Math.min(1, cores / Math.max(load, 1));
}

/**
 * What counts against a limit of something that took `wall_s`: these seconds, or, if others used
 * the cores meanwhile, the fewest that its CPU time can take on all cores.
 */
export function countedSeconds(
  wall_s: number,
  { before, after, cores }: { before: CpuSeconds; after: CpuSeconds; cores: number },
): number {
  const children_s = after.children - before.children;
  const others_s = after.machine - before.machine - children_s;
  return others_s > OTHERS_MAX * wall_s ? children_s / cores : wall_s;
}
