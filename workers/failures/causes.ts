import type { Cause } from "../../engine/mod.ts";

/**
 * Two tables. A sign says what was seen, its kind says what that means, and the kind's policy says
 * what follows. They are separate because the same sign may be the root on one rank and an echo on
 * the next. `diagnosis.ts` reads them. The texts are those of torch 2.5 to 2.15, NCCL to 2.30,
 * gloo, CUDA and vLLM 0.32 and 0.33.
 */

/** What the engine may do after a failure of a group. */
export type Action =
  /** A new generation with a new rendezvous, as often as the budget allows. */
  | "restart"
  /** A new generation, once. The same failure again without progress is not an accident. */
  | "confirm"
  /** A new generation on the remaining devices. */
  | "exclude_device"
  /** A new generation. The stage then uses less memory if it can. */
  | "replan"
  /** Nothing: a second try would fail the same way. */
  | "stop";

export type Policy = {
  /** The budget that the failed stage's attempt counts against. */
  cause: Cause;
  action: Action;
  /**
   * False: something outside ended the process. That says nothing about the work and costs no
   * budget.
   */
  counted: boolean;
  /** One sentence that explains it to people. */
  means: string;
};

const policy = (cause: Cause, action: Action, means: string): Policy => ({
  cause,
  action,
  counted: true,
  means,
});

/** What the engine does about each kind of failure. */
export const POLICY = {
  device_fault: policy("infrastructure", "exclude_device", "A GPU is broken: memory, bus or link."),
  device_memory: policy(
    "out_of_memory",
    "replan",
    "The device has too little memory for the work.",
  ),
  host_memory: policy(
    "out_of_memory",
    "restart",
    "The host ran out of memory and a process was killed for it.",
  ),
  preempted: {
    ...policy("worker_lost", "restart", "A scheduler took the process or its host away."),
    counted: false,
  },
  user_code: policy("user_code", "stop", "User code failed: a reward, a loss, a reader."),
  bad_data: policy("bad_data", "stop", "An input is broken."),
  non_finite: policy(
    "bad_data",
    "stop",
    "The loss or its gradient was not a number for several steps in a row; all were " +
      "skipped, and it would repeat.",
  ),
  import_error: policy("infrastructure", "stop", "A package is missing or incompatible."),
  misuse: policy("infrastructure", "stop", "The group's configuration cannot work."),
  device_access: policy(
    "infrastructure",
    "confirm",
    "A kernel failed: a bug, or a failing device.",
  ),
  desync: policy("infrastructure", "confirm", "Ranks entered different collectives."),
  library: policy("infrastructure", "confirm", "A library reported an internal error."),
  crash: policy("worker_lost", "confirm", "The process crashed in native code."),
  exception: policy("infrastructure", "confirm", "An unexpected exception."),
  engine_start: policy("infrastructure", "confirm", "The inference engine could not start."),
  disk_full: policy("infrastructure", "confirm", "A disk is full."),
  checkpoint_damaged: policy(
    "infrastructure",
    "restart",
    "A checkpoint file differs from what was written.",
  ),
  network: policy(
    "infrastructure",
    "restart",
    "A network interface or network system call failed.",
  ),
  engine_lost: policy("worker_lost", "restart", "The inference engine died behind its process."),
  hang: policy("no_progress", "restart", "A rank is alive but makes no progress."),
  collective_timeout: policy(
    "timeout",
    "restart",
    "A rank waited in a collective for a rank that never arrived.",
  ),
  rendezvous: policy("worker_lost", "restart", "The ranks did not all meet."),
  peer_lost: policy("worker_lost", "restart", "Another rank went away."),
  exit: policy("worker_lost", "restart", "The process exited on its own."),
  kill: policy(
    "worker_lost",
    "restart",
    "The process was killed, and this host does not show by whom.",
  ),
  operator_kill: {
    ...policy("worker_lost", "restart", "Somebody killed the process."),
    counted: false,
  },
  cancelled: policy("infrastructure", "restart", "The engine cancelled it."),
} satisfies Record<string, Policy>;

export type FailureKind = keyof typeof POLICY;

/**
 * `root` explains others, `cascade` is explained by another rank, `teardown` is what any end looks
 * like.
 */
export type Role = "root" | "cascade" | "teardown";

export type Sign = {
  name: string;
  kind: FailureKind;
  role: Role;
  text: RegExp;
  /** Only there. */
  during?: "start" | "operation";
  /** Named ranks, in the first group of this expression: `2` or `1, 2`. */
  names?: RegExp;
  /** The text only says that the reason is in the log. */
  see_log?: true;
};

const sign = (kind: FailureKind, name: string, text: RegExp, more: Partial<Sign> = {}): Sign => ({
  name,
  kind,
  text,
  role: "root",
  ...more,
});
/** Matches what any of these case-insensitive patterns matches. */
const anyOf = (...patterns: RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join("|"), "i");
const CASCADE = { role: "cascade" } as const;
const TEARDOWN = { role: "teardown" } as const;
const SEE_LOG = { see_log: true } as const;

/** Python's own line, and that of transformers, which loads its modules late. */
export const FAILED_IMPORT =
  /^(ModuleNotFoundError|ImportError): |\bFailed to import \S+ because of the following error/;

/** What to do after one. */
export const IMPORT_FIX =
  "a managed Python environment may be damaged: the doctor says so, and a resume then creates it " +
  "again; in your own, install what is missing";

/** Texts in the order of how much they explain. If a rank shows several, the first row wins. */
export const SIGNS: readonly Sign[] = [
  sign("device_fault", "cuda_ecc", /uncorrectable ECC error|ECC_UNCORRECTABLE|ECCUncorrectable/i),
  sign("device_fault", "gpu_off_the_bus", /fallen off the bus|\bGPU is lost\b/i),
  sign(
    "device_fault",
    "gpu_xid",
    /NVRM: Xid [^:]*:[^:]*(?::[^:]*)*?: (48|63|64|74|79|92|94|95|119|120),/,
  ),
  sign("device_fault", "nvlink", /NVLINK_UNCORRECTABLE|nvlink.*\b(fatal|uncorrectable)\b/i),

  sign(
    "device_memory",
    "cuda_out_of_memory",
    /(CUDA|HIP|XPU)( error:| failure)?( \d+)? '?out of memory|OutOfMemoryError\b.*(CUDA|HIP|GPU)/i,
  ),
  sign("device_memory", "cublas_alloc_failed", /_STATUS_ALLOC_FAILED/),
  sign(
    "device_memory",
    "vllm_cache_memory",
    anyOf(
      /No available memory for the cache blocks|less than desired GPU memory utilization/i,
      /is larger than the available KV cache memory/i,
    ),
  ),
  sign(
    "host_memory",
    "kernel_oom_kill",
    /Out of memory: Killed process|\boom[-_]kill(er)?\b|OOMKilled/i,
  ),
  sign(
    "host_memory",
    "host_allocation",
    /DefaultCPUAllocator: can't allocate memory|Cannot allocate memory|std::bad_alloc/i,
  ),

  sign(
    "preempted",
    "scheduler_text",
    anyOf(
      /DUE TO (TIME LIMIT|PREEMPTION|NODE FAILURE)|\bNODE_FAIL\b|\bPREEMPTED\b/i,
      /spot instance (interruption|termination)/i,
    ),
  ),

  sign(
    "device_access",
    "illegal_memory_access",
    /illegal memory access|misaligned address|unspecified launch failure/i,
  ),
  sign("device_access", "device_assert", /device-side assert triggered/i),
  sign(
    "desync",
    "gloo_mismatch",
    /gloo::EnforceNotMet|op\.preamble\.length <= op\.nbytes|collective mismatch in your code/i,
  ),
  sign("desync", "collective_mismatch", /Detected mismatch between collectives/i),
  sign(
    "misuse",
    "nccl_invalid_usage",
    /ncclInvalid(Usage|Argument)|Duplicate GPU detected|invalid usage \(run with NCCL/i,
  ),
  sign("misuse", "world_size", /world size of \d+ but the current world size is \d+/i),
  sign("library", "nccl_internal_error", /ncclInternalError|internal error - please report/i),
  sign(
    "network",
    "infiniband",
    /NET\/IB ?: ?(Got completion|.*async fatal event)|ibv_\w+ failed with/i,
  ),
  sign("misuse", "nccl_system_error_at_start", /ncclSystemError|unhandled system error/i, {
    during: "start",
  }),
  sign("network", "nccl_system_error", /ncclSystemError|unhandled system error/i),

  sign(
    "disk_full",
    "no_space",
    anyOf(
      /No space left on device|\bENOSPC\b|Disk quota exceeded/i,
      /basic_ios::clear: iostream error|inline_container\.cc:\d+\] \. unexpected pos/i,
    ),
  ),
  sign(
    "checkpoint_damaged",
    "checkpoint_unreadable",
    anyOf(
      /PytorchStreamReader failed|SafetensorError|invalid header or archive is corrupted/i,
      /is not the recorded one: sha256 is|OSError: \[Errno 22\]/i,
    ),
  ),

  sign("engine_lost", "vllm_dead", /EngineDeadError|EngineCore encountered an issue/, SEE_LOG),
  sign("engine_lost", "vllm_worker_died", /Worker proc.* died unexpectedly/i, SEE_LOG),
  sign("hang", "vllm_rpc_timeout", /RPC call to .* timed out/i),
  sign("engine_start", "vllm_init_failed", /Engine core initialization failed/i, SEE_LOG),

  sign(
    "hang",
    "watchdog_stuck",
    /watchdog got stuck|ProcessGroupNCCL watchdog hang|Could not acquire GIL/i,
  ),
  sign("hang", "monitored_barrier", /failed to pass monitoredBarrier/i, {
    ...CASCADE,
    names: /Ranks? ([\d, ]+) failed to pass monitoredBarrier/i,
  }),
  sign("peer_lost", "nccl_remote_rank", /remote error detected from rank/i, {
    ...CASCADE,
    names: /remote error detected from rank:? ?(\d+)/i,
  }),
  sign(
    "collective_timeout",
    "nccl_watchdog_timeout",
    anyOf(
      /watchdog caught collective operation timeout|watchdog detected operation timeout/i,
      /NCCL operation timed out|Timeout at NCCL work|detected by watchdog at work/i,
    ),
    CASCADE,
  ),
  sign("collective_timeout", "gloo_timeout", /Timed out waiting \d+ ?ms for (recv|send)/i, CASCADE),
  sign(
    "rendezvous",
    "ranks_missing",
    /Timed out after \d+ seconds waiting for clients|wait timeout after \d+ ?ms/i,
    CASCADE,
  ),
  sign(
    "rendezvous",
    "store_unreachable",
    /client socket has timed out|TCP client failed to/i,
    CASCADE,
  ),
  sign("rendezvous", "port_taken", /EADDRINUSE|address already in use/i),
  sign(
    "peer_lost",
    "nccl_remote_error",
    /ncclRemoteError|remote process exit|process exiting prematurely/i,
    CASCADE,
  ),
  sign(
    "peer_lost",
    "peer_closed",
    /Connection closed by (remote )?peer|Connection reset by peer|nccl hit async error/i,
    CASCADE,
  ),
  sign(
    "peer_lost",
    "store_lost",
    /Failed to recv, got 0 bytes|Connection was likely closed|Socket Timeout|Broken pipe/i,
    CASCADE,
  ),
  sign(
    "device_access",
    "nccl_cuda_error",
    /ncclUnhandledCudaError|unhandled cuda error|NCCL WARN Cuda failure/i,
    SEE_LOG,
  ),
  sign(
    "device_access",
    "cuda_error",
    /CUDA error: |CUDNN_STATUS_(INTERNAL_ERROR|EXECUTION_FAILED)|CUBLAS_STATUS_\w*(FAILED|ERROR)/,
  ),
  sign("import_error", "import_failed", FAILED_IMPORT),
  sign(
    "peer_lost",
    "collective_aborted",
    anyOf(
      /Application timeout caused pair closure|communicator was aborted|already Invalidated/i,
      /flight recorder dump signal|operations have failed or timed out/i,
    ),
    TEARDOWN,
  ),
];

/** Guesses are not evidence. */
export const ADVICE = /\b(might|may) (also )?be (caused|due)|\bmight be asynchronously reported\b/i;

/** Signs without a text. */
export const TEXTLESS: Readonly<Record<string, FailureKind>> = {
  told_user_code: "user_code",
  told_bad_data: "bad_data",
  told_cancelled: "cancelled",
  told_import_error: "import_error",
  told_disk_full: "disk_full",
  told_out_of_memory: "device_memory",
  told_timeout: "hang",
  non_finite: "non_finite",
  memory_error: "host_memory",
  oom_kill_counted: "host_memory",
  sigterm: "preempted",
  sigkill: "operator_kill",
  sigkill_unexplained: "kill",
  crash_signal: "crash",
  exit_code: "exit",
  exception: "exception",
  silent_rank: "hang",
};
