import { canonicalJson } from "../canonical.ts";
import { InvalidInputError } from "../errors.ts";
import type { JournalRow, Store } from "../stores/store.ts";

/** Longer values belong in a file; pass its path instead. */
const VALUE_CHARS_MAX = 64 * 1024;

/**
 * Sends a run the signal that a body waits for, or will wait for, with `ctx.signalled(name)`. Works
 * from any process: the store carries it, and the engine that executes the run sees it at its next
 * poll. The first signal of a name counts.
 * @throws {InvalidInputError} If the run has ended, the value is too long, or the signal was sent
 * before with a different value.
 */
export async function signalRun(
  store: Store,
  run: string,
  { name, value = null }: { name: string; value?: unknown },
): Promise<void> {
  const text = canonicalJson(value);
  const facts = { run, name };
  if (text.length > VALUE_CHARS_MAX) {
    throw new InvalidInputError(
      `Cannot signal '${name}' to run '${run}' because its value is too long: ` +
        `${text.length} characters, at most ` +
        `${VALUE_CHARS_MAX}. Fix: pass the path of a file instead`,
      facts,
    );
  }
  const before = await sentSignal(store, run, name);
  const head = before ? null : await store.signal(run, name, text);
  const sent = before ?? await sentSignal(store, run, name);
  if (head && sent === undefined) {
    throw new InvalidInputError(
      `Cannot signal '${name}' to run '${run}' because it has ended: it is ${head.status}`,
      facts,
    );
  }
  if (sent!.value === text) return;
  throw new InvalidInputError(
    `Cannot signal '${name}' to run '${run}' because it was already sent: its value is ${
      sent!.value
    }, and the first counts`,
    facts,
  );
}

/** The first signal of this name, if it was sent. */
export async function sentSignal(
  store: Store,
  run: string,
  name: string,
): Promise<JournalRow | undefined> {
  const rows = await store.read(run, { kinds: ["signal"], prefix: name });
  return rows.find(({ key }) => key === name);
}
