import { died, evidence, type FailureCase, raised } from "./evidence.ts";

const EIO = "[enforce fail at inline_container.cc:672] . unexpected pos 2368 vs 2262";

/** Failures of one process: its GPU, its memory, its disk, its code and how it ended. */
export const PROCESS_CASES: FailureCase[] = [
  [
    "CUDA, ECC",
    raised(
      "AcceleratorError",
      "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously",
    ),
    ["cuda_ecc", "device_fault", "root", "infrastructure"],
  ],
  [
    "Xid 79 in the kernel's log",
    died("SIGABRT", {
      kernel: [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
      ],
    }),
    ["gpu_off_the_bus", "device_fault", "root", "infrastructure"],
  ],
  [
    "Xid 94 in the kernel's log",
    raised("RuntimeError", "CUDA error: unknown error", {
      kernel: ["NVRM: Xid (PCI:0000:3b:00): 94, pid=1234, name=python, Contained ECC error."],
    }),
    ["gpu_xid", "device_fault", "root", "infrastructure"],
  ],
  [
    "Xid 31 is a bug, not a broken GPU",
    raised("AcceleratorError", "CUDA error: an illegal memory access was encountered", {
      kernel: [
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python, Ch 00000008, " +
        "intr 00000000. MMU Fault",
      ],
    }),
    ["illegal_memory_access", "device_access", "root", "infrastructure"],
  ],
  [
    "CUDA, device-side assert",
    raised("AcceleratorError", "CUDA error: device-side assert triggered"),
    ["device_assert", "device_access", "root", "infrastructure"],
  ],
  [
    "device memory, torch",
    raised("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1 GiB", {
      cause: "out_of_memory",
    }),
    ["cuda_out_of_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "device memory, cuBLAS",
    raised(
      "RuntimeError",
      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    ["cublas_alloc_failed", "device_memory", "root", "out_of_memory"],
  ],
  [
    "device memory, an exception that only its type tells",
    raised("OutOfMemoryError", "XPU", { cause: "out_of_memory" }),
    ["told_out_of_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "host memory, by the cgroup's count",
    died("SIGKILL", { oom_kills: 1 }),
    ["oom_kill_counted", "host_memory", "root", "out_of_memory"],
  ],
  [
    "host memory, by the kernel's line",
    died("SIGKILL", {
      oom_kills: 0,
      kernel: ["Out of memory: Killed process 4242 (python) total-vm:9kB"],
    }),
    ["kernel_oom_kill", "host_memory", "root", "out_of_memory"],
  ],
  [
    "host memory, Python's own",
    raised("MemoryError", "", { cause: "out_of_memory" }),
    ["memory_error", "host_memory", "root", "out_of_memory"],
  ],
  [
    "SIGKILL where the cgroup counted nothing",
    died("SIGKILL", {
      oom_kills: 0,
      log: ["RuntimeError: [gloo] Connection closed by peer, of an hour ago"],
    }),
    ["sigkill", "operator_kill", "root", "worker_lost"],
  ],
  [
    "SIGKILL where no count can be read",
    died("SIGKILL"),
    ["sigkill_unexplained", "kill", "root", "worker_lost"],
  ],
  [
    "137, as a shell says it",
    evidence({
      cause: "exit",
      exception: null,
      message: "ended with exit code 137",
      exit_code: 137,
      oom_kills: 0,
    }),
    ["sigkill", "operator_kill", "root", "worker_lost"],
  ],
  [
    "vLLM, dead",
    raised(
      "EngineDeadError",
      "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ),
    ["vllm_dead", "engine_lost", "root", "worker_lost"],
  ],
  [
    "vLLM, dead of something that its log tells",
    raised(
      "EngineDeadError",
      "EngineCore encountered an issue. See stack trace (above) for the root cause.",
      {
        log: [
          "(EngineCore pid=9) torch.OutOfMemoryError: CUDA out of memory. " +
          "Tried to allocate 20.00 MiB.",
        ],
      },
    ),
    ["cuda_out_of_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "vLLM, did not start",
    raised(
      "RuntimeError",
      "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
      {
        during: "start",
      },
    ),
    ["vllm_init_failed", "engine_start", "root", "infrastructure"],
  ],
  [
    "vLLM, no memory for its cache",
    raised(
      "RuntimeError",
      "Engine core initialization failed. See root cause above. Failed core proc(s): {}",
      {
        during: "start",
        log: [
          "ValueError: No available memory for the cache blocks. " +
          "Try increasing `gpu_memory_utilization`",
        ],
      },
    ),
    ["vllm_cache_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "vLLM, a worker died",
    raised(
      "RuntimeError",
      "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",
    ),
    ["vllm_worker_died", "engine_lost", "root", "worker_lost"],
  ],
  [
    "vLLM, a call hangs",
    raised("TimeoutError", "RPC call to execute_model timed out."),
    ["vllm_rpc_timeout", "hang", "root", "no_progress"],
  ],
  [
    "an import",
    raised("ModuleNotFoundError", "No module named 'deepspeed'", {
      cause: "import_error",
      during: "start",
    }),
    ["told_import_error", "import_error", "root", "infrastructure"],
  ],
  [
    "an import in an operation",
    raised("ModuleNotFoundError", "No module named 'safetensors.torch'"),
    ["import_failed", "import_error", "root", "infrastructure"],
  ],
  [
    "an import of transformers, which loads its modules late",
    raised(
      "RuntimeError",
      "Failed to import transformers.models.qwen2 because of the following error (look up to see " +
        "its traceback):\nNo module named 'transformers.models.qwen2'",
    ),
    ["import_failed", "import_error", "root", "infrastructure"],
  ],
  [
    "an import that ends a process before it can say so",
    evidence({
      cause: "exit",
      exception: null,
      exit_code: 1,
      message: "ended with exit code 1",
      log: ["Traceback (most recent call last):", "ImportError: cannot import name 'x' from 'y'"],
    }),
    ["import_failed", "import_error", "root", "infrastructure"],
  ],
  [
    "a log that only mentions an import",
    evidence({
      cause: "exit",
      exception: null,
      exit_code: 1,
      message: "ended with exit code 1",
      log: ["WARNING skipped: ImportError: no triton"],
    }),
    ["exit_code", "exit", "root", "worker_lost"],
  ],
  [
    "code of the user",
    raised("UserCodeError", "reward.py:3: KeyError: 'answer'", { cause: "user_code" }),
    ["told_user_code", "user_code", "root", "user_code"],
  ],
  [
    "a broken input",
    raised("BadDataError", "Cannot read artifact 00 because it is not there", {
      cause: "bad_data",
    }),
    ["told_bad_data", "bad_data", "root", "bad_data"],
  ],
  [
    "a loss that is not a number",
    raised(
      "NonFiniteError",
      "non_finite: Cannot step because the loss is not finite: first at node 3",
      {
        cause: "bad_data",
      },
    ),
    ["non_finite", "non_finite", "root", "bad_data"],
  ],
  [
    "a checkpoint with another hash",
    raised(
      "BadDataError",
      "Cannot open '/c' because its file 'x' is not the recorded one: sha256 is 1",
      {
        cause: "bad_data",
      },
    ),
    ["checkpoint_unreadable", "checkpoint_damaged", "root", "infrastructure"],
  ],
  [
    "a checkpoint that torch cannot read",
    raised(
      "RuntimeError",
      "PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    ["checkpoint_unreadable", "checkpoint_damaged", "root", "infrastructure"],
  ],
  [
    "a truncated checkpoint",
    raised("OSError", "[Errno 22] Invalid argument"),
    ["checkpoint_unreadable", "checkpoint_damaged", "root", "infrastructure"],
  ],
  [
    "a checkpoint of another world size",
    raised(
      "ZeRORuntimeException",
      "The checkpoint being loaded used a DP world size of 2 but the current world size is 1.",
    ),
    ["world_size", "misuse", "root", "infrastructure"],
  ],
  [
    "a full disk, as the trainer refuses to write on it",
    raised("DiskFullError", "Cannot write '/ckpt/x' because its disk is full", {
      cause: "disk_full",
    }),
    ["told_disk_full", "disk_full", "root", "infrastructure"],
  ],
  [
    "a full disk, as Python says it",
    raised("OSError", "[Errno 28] No space left on device: '/ckpt/x'"),
    ["no_space", "disk_full", "root", "infrastructure"],
  ],
  [
    "a full disk, as torch says it first",
    raised("RuntimeError", "basic_ios::clear: iostream error"),
    ["no_space", "disk_full", "root", "infrastructure"],
  ],
  ["a full disk, as torch says it then", raised("RuntimeError", EIO), [
    "no_space",
    "disk_full",
    "root",
    "infrastructure",
  ]],
  ["SIGTERM", died("SIGTERM"), ["sigterm", "preempted", "root", "worker_lost"]],
  [
    "143, as a shell says it",
    evidence({
      cause: "exit",
      exception: null,
      message: "ended with exit code 143",
      exit_code: 143,
    }),
    ["sigterm", "preempted", "root", "worker_lost"],
  ],
  [
    "Slurm's time limit",
    died("SIGKILL", {
      kernel: [],
      message: "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***",
    }),
    ["scheduler_text", "preempted", "root", "worker_lost"],
  ],
  ["SIGSEGV", died("SIGSEGV"), ["crash_signal", "crash", "root", "worker_lost"]],
  ["SIGABRT that says nothing", died("SIGABRT"), ["crash_signal", "crash", "root", "worker_lost"]],
  [
    "an exit",
    evidence({ cause: "exit", exception: null, message: "ended with exit code 17", exit_code: 17 }),
    ["exit_code", "exit", "root", "worker_lost"],
  ],
  [
    "an exception that nobody knows, with old lines in its log",
    raised("ValueError", "too many values to unpack", {
      log: ["RuntimeError: Connection closed by peer, an hour ago"],
    }),
    ["exception", "exception", "root", "infrastructure"],
  ],
  [
    "advice is no evidence",
    died("SIGSEGV", { log: ["This might be caused by a device-side assert triggered elsewhere"] }),
    ["crash_signal", "crash", "root", "worker_lost"],
  ],
];
