/** Workers run user code, so they must not see the store's address and password. */
const SECRET_NAME = /^(HOLDFAST_STORE|DATABASE_URL|PG[A-Z]+)$/;
const SECRET_VALUE = /^postgres(ql)?:\/\//i;

/** The part of this process's environment that our Python processes receive. */
export function workerEnvironment(): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name, value]) =>
    !SECRET_NAME.test(name) && !SECRET_VALUE.test(value)
  );
  return Object.fromEntries(kept);
}
