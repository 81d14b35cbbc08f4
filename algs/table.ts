import { grpo } from "./grpo.ts";
import { sft } from "./sft.ts";

/** Algorithms of the online flow by name: they learn from rewards. A new one is its own file and one line here. */
export const ONLINE_ALGORITHMS = { grpo };

/** Algorithms of the supervised flow by name: they learn from completions. */
export const SUPERVISED_ALGORITHMS = { sft };

export const ALGORITHMS = { ...ONLINE_ALGORITHMS, ...SUPERVISED_ALGORITHMS };
