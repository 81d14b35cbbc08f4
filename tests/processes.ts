/** Processes that carry a text in their environment, wherever they moved since they were started. */
export async function carrying(text: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === Deno.pid) continue;
    const environment = await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "");
    if (environment.includes(text)) found.push(Number(name));
  }
  return found;
}

/** Ends all of them, and what they start meanwhile. */
export async function endCarrying(text: string): Promise<void> {
  for (let carriers = await carrying(text); carriers.length > 0; carriers = await carrying(text)) {
    for (const pid of carriers) endNow(pid);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function endNow(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // It has ended by itself.
  }
}
