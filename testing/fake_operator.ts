import type { CallOptions, CallResult, Operator } from "../workers/mod.ts";

export type FakeCall = { op: string; args: unknown; key: string };
/**
 * Called before an operation begins and again (`done`) before its result is handed over; what it
 * throws is the operation's end.
 */
export type FakeHook = (call: FakeCall, moment: "begin" | "done") => void | Promise<void>;

/**
 * What fake workers have in common: operations that are counted, may be broken on purpose, and need
 * something resident.
 */
export abstract class FakeOperator implements Operator {
  /** Operations that were asked for, in order. */
  readonly calls: FakeCall[] = [];
  /** Breaks operations on purpose. */
  hook: FakeHook | null;
  protected held: { version: string; weights: number } | null = null;

  constructor(hook: FakeHook | null) {
    this.hook = hook;
  }

  /** The version that is resident; null after a start. */
  get version(): string | null {
    return this.held?.version ?? null;
  }

  /** What a replaced worker is: it holds nothing. */
  forget(): void {
    this.held = null;
  }

  async call(op: string, args: unknown, { key }: CallOptions): Promise<CallResult> {
    const call = { op, args, key };
    this.calls.push(call);
    await this.hook?.(call, "begin");
    const blobs: Uint8Array[] = [];
    const output = await this.operate(op, { args, blobs });
    await this.hook?.(call, "done");
    return { outputs: [output], blobs, generation: 1 };
  }

  protected abstract operate(
    op: string,
    work: { args: unknown; blobs: Uint8Array[] },
  ): Promise<unknown>;

  /** The weights of `version`, or the answer that they are not here. */
  protected resident(
    version: string,
  ): { version: string; weights: number } | { not_resident: string | null } {
    return this.held?.version === version ? this.held : { not_resident: this.version };
  }
}
