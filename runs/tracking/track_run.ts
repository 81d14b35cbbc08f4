import { computedStatus, InvalidInputError, type RunHead } from "../../engine/mod.ts";
import type { OnEnvironmentProgress } from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { resumable } from "../session/resumable.ts";
import { trackedEnd } from "./tracked_end.ts";
import { Trackers } from "./trackers.ts";

/** What to send, and who receives the progress. */
type TrackRunOptions = {
  /** `track=...`: other trackers than the run's. */
  overrides?: readonly string[];
  say: (text: string) => void;
  onSetup?: OnEnvironmentProgress;
};

/**
 * Sends what the trackers of a run lack, also of a run that has ended. Records nothing. Returns
 * whether they have everything.
 * @throws {InvalidInputError} If an engine runs the run, or it has no trackers.
 */
export async function trackRun(
  home: Home,
  head: RunHead,
  { overrides = [], say, onSetup }: TrackRunOptions,
): Promise<boolean> {
  const { id, epoch } = head;
  const refuse = (why: string) => new InvalidInputError(`Cannot track run '${id}' because ${why}`);
  if (computedStatus(head) === "running") {
    throw refuse("its engine runs. Fix: wait, or stop it: it sends the points itself");
  }
  const { config, settings, refused } = await resumable(home, head, { overrides, accept: true });
  const others = [...settings, ...refused].filter(({ path }) => !/^track(?:\.|$)/.test(path));
  if (others.length > 0) {
    throw refuse(`${others[0]!.path} is no setting of trackers. Fix: leave it out`);
  }
  const fields = config as Record<string, unknown>;
  if (((fields.track ?? []) as unknown[]).length === 0) {
    throw refuse("it has no trackers. Fix: name one, such as track=tensorboard");
  }
  const owns = async () => (await home.store.head(id))?.epoch === epoch;
  const trackers = new Trackers(home, { head, config: fields, owns, say, onSetup });
  trackers.start(epoch);
  return await trackers.close(() => trackedEnd(home, head));
}
