/** The store's address and password are the engine's alone: workers run user code. */
const SECRET_NAME = /^(HOLDFAST_STORE|DATABASE_URL|PG[A-Z]+)$/;
const SECRET_VALUE = /^postgres(ql)?:\/\//i;

/** What a Python process of ours is given of this one's environment. */
export function workerEnvironment(): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name, value]) =>
    !SECRET_NAME.test(name) && !SECRET_VALUE.test(value)
  );
  return Object.fromEntries(kept);
}
