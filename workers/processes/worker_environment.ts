/** Workers run user code, so they must not see the store's address and password. */
const SECRET_NAME = /^(HOLDFAST_STORE|DATABASE_URL|PG[A-Z]+)$/;
const SECRET_VALUE = /^postgres(ql)?:\/\//i;

/** Tokens of the hub. Models bring code, so only what fetches them receives one. */
const HUB_TOKEN = /^(HF_TOKEN|HUGGING_?FACE_?HUB_(API_)?TOKEN|HF_API_TOKEN)$/;

/**
 * The part of this process's environment that our Python processes receive. `hub_token`: for one
 * that runs no code of a user or a model, or that gives a reward what its `env` names.
 */
export function workerEnvironment({ hub_token = false } = {}): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name, value]) =>
    !SECRET_NAME.test(name) && !SECRET_VALUE.test(value) && (hub_token || !HUB_TOKEN.test(name))
  );
  return Object.fromEntries(kept);
}
