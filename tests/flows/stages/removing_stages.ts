/** The stages that remove what a run no longer needs, run on its directories without workers. */
import type { Policy } from "../../../data/mod.ts";
import type { RecordingContext, RunHead } from "../../../engine/mod.ts";
import type { Home } from "../../../runs/mod.ts";
import { claimDirectories, refuseOtherHome } from "../../../runs/home/run_directories.ts";
import { Paths, Sampler, Trainer, Trainers } from "../../../flows/resources.ts";
import { checkpointPolicy } from "../../../flows/stages/checkpoint_policy.ts";
import { publishPolicy } from "../../../flows/stages/publish_policy.ts";
import { refreshReference } from "../../../flows/stages/refresh_reference.ts";
import type { CheckpointNote } from "../../../workers/mod.ts";

export const REMOVING_STAGES = ["publish", "checkpoint", "refresh"] as const;
export type RemovingStage = typeof REMOVING_STAGES[number];

const policyOf = (version: string): Policy => ({
  version,
  record: { sha256: version, bytes: 1 },
  number: 1,
  model_path: "",
});
const POLICY = policyOf("f".repeat(64));

/**
 * What an engine does of one stage: it claims the run's directories, writes nothing but
 * directories, and removes.
 */
export async function removeByStage(
  home: Home,
  head: RunHead,
  stage: RemovingStage,
): Promise<void> {
  await refuseOtherHome(home, head);
  await claimDirectories(home, head, { make: true });
  const notes = await home.store.read(head.id, { kinds: ["note/checkpoint"] });
  const ctx = contextOf({
    home: home.dir,
    owner: await home.owner(head.id),
    run: home.runDir(head.id),
    checkpoints: home.checkpointsDir(head.id),
    publications: `${home.runDir(head.id)}/publications`,
  }, notes.map(({ value }) => JSON.parse(value)));
  const reference = policyOf("e".repeat(64));
  if (stage === "publish") await publishPolicy.body({ policy: POLICY }, ctx);
  if (stage === "refresh") {
    await refreshReference.body({ policy: POLICY, reference, round: 1, refresh_rounds: 1 }, ctx);
  }
  if (stage === "checkpoint") {
    const input = checkpointPolicy.input.parse({ policy: POLICY, round: 1, last: 1, keep_last: 9 });
    await checkpointPolicy.body(input, ctx);
  }
}

function contextOf(paths: Record<string, unknown>, notes: CheckpointNote[]): RecordingContext {
  const created = (target: string | { dir: string }) => {
    const dir = typeof target === "string" ? target : target.dir;
    Deno.mkdirSync(dir, { recursive: true });
    return dir;
  };
  const trainer = {
    writing: new Set<string>(),
    starts: () => [],
    checkpoints: () => notes,
    dropped: () => {},
    publish: (_: Policy, target: string | { dir: string }) =>
      Promise.resolve({ dir: created(target) }),
    save: ({ version, number }: Policy, { dir, round }: { dir: string; round: number }) => {
      notes.push({
        version,
        dir: created(dir),
        digest: "",
        world_size: 1,
        files: [],
        number,
        round,
        metric: null,
      });
      return Promise.resolve(notes.at(-1));
    },
  };
  const resources: Record<string, unknown> = {
    [Paths.name]: paths,
    [Trainer.name]: trainer,
    [Trainers.name]: [trainer],
    [Sampler.name]: { load: () => Promise.resolve([]) },
  };
  return {
    key: "round/1/stage",
    epoch: 1,
    attempt: 1,
    resource: ({ name }: { name: string }) => resources[name],
    note: () => {},
    record: () => Promise.resolve(),
    read: () => Promise.resolve([]),
    owned: () => Promise.resolve(),
    emit: () => {},
  } as unknown as RecordingContext;
}
