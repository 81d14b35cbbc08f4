/**
 * A role that no flow uses, as `workers/roles/NAME.ts` would declare it. Its worker is
 * `tests/python/tracker_worker.py`.
 */
import { z } from "zod";
import { defineRole, NotResident } from "../../../workers/mod.ts";

const Frame = z.strictObject({ x: z.int(), label: z.string().nullable() });
const Seen = z.strictObject({ at: z.string(), label: z.string().nullable() });

/** The configuration's block `tracker:`. */
const TrackerConfig = z.strictObject({
  replicas: z.int().positive().default(1),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto"),
  scale: z.int().default(1),
  path: z.string().default("").describe("Where Python finds the worker and its types."),
});

export const trackerRole = defineRole({
  name: "tracker",
  module: "tracker_worker",
  spec: z.strictObject({ scale: z.int() }),
  operations: {
    /** Makes a map resident. */
    open: {
      args: z.strictObject({ map: z.string() }),
      output: z.strictObject({ map: z.string() }),
    },
    /** Where frames are on a map. */
    follow: {
      args: z.strictObject({ map: z.string(), frames: z.array(Frame) }),
      output: z.union([NotResident, z.strictObject({ pid: z.int(), seen: z.array(Seen) })]),
      phase: "generation",
    },
  },
  parts: { Frame, Seen },
  rebuilt: (ask, { map }) => ask("open", { map: map as string }),
  block: TrackerConfig,
  groups: (_, { replicas, device, scale, path }) =>
    Array.from({ length: replicas }, (_, i) => ({
      group: `tracker/${i}`,
      ranks: 1,
      spec: { scale },
      environment: "torch_cpu",
      python: null,
      env: { PYTHONPATH: path },
      gpus: {
        block: "tracker",
        device,
        count: 1,
        each: { reason: "each needs a GPU", why: "a map fills it", fix: "Lower tracker.replicas" },
      },
    })),
});
