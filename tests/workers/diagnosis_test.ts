import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { type Cause, CAUSES } from "../../engine/mod.ts";
import { classify, diagnose, type Evidence, fingerprint } from "../../workers/diagnosis.ts";
import { type FailureKind, POLICY, SIGNS, TEXTLESS } from "../../workers/causes.ts";
import { failureReport } from "../../testing/mod.ts";

const evidence = (more: Partial<Evidence>): Evidence => ({
  cause: "other",
  exception: "RuntimeError",
  message: "",
  exit_code: null,
  signal: null,
  kernel: [],
  oom_kills: null,
  log: [],
  during: "operation",
  ...more,
});
const died = (signal: string, more: Partial<Evidence> = {}) =>
  evidence({ cause: "signal", exception: null, message: `The process was killed by ${signal}`, signal, ...more });
const raised = (exception: string, message: string, more: Partial<Evidence> = {}) =>
  evidence({ exception, message, ...more });

const WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, " +
  "NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.";
const AFTER_WATCHDOG =
  "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, " +
  "subsequent GPU operations might run on corrupted/incomplete data. To avoid data inconsistency, we are taking the " +
  "entire process down.";
const NCCL = "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, ";
const EIO = "[enforce fail at inline_container.cc:672] . unexpected pos 2368 vs 2262";

/** What was seen, and what it must be read as: sign, kind, role, the engine's cause. */
const CASES: [name: string, Evidence, [observed: string, kind: FailureKind, role: string, cause: Cause]][] = [
  [
    "NCCL watchdog, torch 2.5 to 2.15",
    died("SIGABRT", { log: [`[rank1]:[E] [Rank 1] ${WATCHDOG}`, AFTER_WATCHDOG, "terminate called after throwing"] }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch to 2.4",
    died("SIGABRT", { log: ["Timeout at NCCL work: 12, last enqueued NCCL work: 13, last completed NCCL work: 11."] }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch 2.5",
    died("SIGABRT", {
      log: ["Exception (either an error or timeout) detected by watchdog at work: 12, last enqueued"],
    }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch 2.15",
    died("SIGABRT", {
      log: ["failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 13"],
    }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "nccl2 of torch 2.15",
    raised("DistBackendError", "timeout - timeout watchdog detected operation timeout"),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL's heartbeat monitor",
    died("SIGABRT", {
      log: ["[PG ID 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"],
    }),
    ["watchdog_stuck", "hang", "root", "no_progress"],
  ],
  [
    "NCCL, remote error that names a rank",
    raised("DistBackendError", "[Rank 0] remote error detected from rank: 3"),
    ["nccl_remote_rank", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "NCCL, remote error",
    raised(
      "DistBackendError",
      `${NCCL}remote process exited or there was a network error, NCCL version 2.30.4\nncclRemoteError: A call failed ` +
        "possibly due to a network error or a remote process exiting prematurely.\nLast error:\nsocketProgress: " +
        "Connection closed by remote peer node1<4711>",
    ),
    ["nccl_remote_error", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "NCCL, system error in the middle",
    raised(
      "DistBackendError",
      `${NCCL}unhandled system error (run with NCCL_DEBUG=INFO for details)\nncclSystemError:`,
    ),
    ["nccl_system_error", "network", "root", "infrastructure"],
  ],
  [
    "NCCL, system error at the start",
    raised("DistBackendError", `${NCCL}unhandled system error (run with NCCL_DEBUG=INFO for details)`, {
      during: "start",
    }),
    ["nccl_system_error_at_start", "misuse", "root", "infrastructure"],
  ],
  [
    "NCCL, internal error",
    raised("DistBackendError", `${NCCL}internal error - please report this issue to the NCCL developers`),
    ["nccl_internal_error", "library", "root", "infrastructure"],
  ],
  [
    "NCCL, invalid usage",
    raised(
      "DistBackendError",
      `${NCCL}invalid usage (run with NCCL_DEBUG=WARN)\nDuplicate GPU detected : rank 1 and 0`,
    ),
    ["nccl_invalid_usage", "misuse", "root", "infrastructure"],
  ],
  [
    "NCCL, aborted for a reason",
    raised("RuntimeError", `NCCL communicator was aborted on rank 1. Original reason for failure was: ${WATCHDOG}`),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL, aborted",
    raised("RuntimeError", "NCCL communicator was aborted on rank 1."),
    ["collective_aborted", "peer_lost", "teardown", "worker_lost"],
  ],
  [
    "NCCL, the CUDA error behind it in the log",
    raised("DistBackendError", `${NCCL}unhandled cuda error (run with NCCL_DEBUG=INFO for details)`, {
      log: ["node1:77:99 [0] misc/strongstream.cc:53 NCCL WARN Cuda failure 214 'uncorrectable ECC error encountered'"],
    }),
    ["cuda_ecc", "device_fault", "root", "infrastructure"],
  ],
  [
    "NCCL, InfiniBand",
    died("SIGABRT", {
      log: ["NCCL WARN NET/IB: Got completion from peer 10.0.0.2 with status=12 opcode=0 vendor err 129"],
    }),
    ["infiniband", "network", "root", "infrastructure"],
  ],
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
    died("SIGABRT", { kernel: ["NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."] }),
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
      kernel: ["NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python, Ch 00000008, intr 00000000. MMU Fault"],
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
    raised("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
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
    died("SIGKILL", { oom_kills: 0, kernel: ["Out of memory: Killed process 4242 (python) total-vm:9kB"] }),
    ["kernel_oom_kill", "host_memory", "root", "out_of_memory"],
  ],
  [
    "host memory, Python's own",
    raised("MemoryError", "", { cause: "out_of_memory" }),
    ["memory_error", "host_memory", "root", "out_of_memory"],
  ],
  [
    "SIGKILL where the cgroup counted nothing",
    died("SIGKILL", { oom_kills: 0, log: ["RuntimeError: [gloo] Connection closed by peer, of an hour ago"] }),
    ["sigkill", "operator_kill", "root", "worker_lost"],
  ],
  [
    "SIGKILL where no count can be read",
    died("SIGKILL"),
    ["sigkill_unexplained", "kill", "root", "worker_lost"],
  ],
  [
    "137, as a shell says it",
    evidence({ cause: "exit", exception: null, message: "ended with exit code 137", exit_code: 137, oom_kills: 0 }),
    ["sigkill", "operator_kill", "root", "worker_lost"],
  ],
  [
    "gloo, peer gone",
    raised("RuntimeError", "[../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:4711"),
    ["peer_closed", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "gloo, peer reset",
    raised("RuntimeError", "[gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: Connection reset by peer"),
    ["peer_closed", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "gloo, waited",
    raised(
      "RuntimeError",
      "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to complete",
    ),
    ["gloo_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "gloo, every operation after it",
    raised("RuntimeError", "[gloo/transport/tcp/pair.cc:1] Application timeout caused pair closure"),
    ["collective_aborted", "peer_lost", "teardown", "worker_lost"],
  ],
  [
    "gloo, mismatch aborts",
    died("SIGABRT", {
      log: [
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
        "  what():  [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 668 vs 4. distributed collective mismatch in your code?",
      ],
    }),
    ["gloo_mismatch", "desync", "root", "infrastructure"],
  ],
  [
    "gloo, monitored barrier",
    raised("RuntimeError", "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 4000 ms"),
    ["monitored_barrier", "hang", "cascade", "no_progress"],
  ],
  [
    "the store: not all came",
    raised("DistStoreError", "Timed out after 61 seconds waiting for clients. 2/3 clients joined."),
    ["ranks_missing", "rendezvous", "cascade", "worker_lost"],
  ],
  [
    "the store: a key never came",
    raised("DistStoreError", "wait timeout after 60000ms, keys: /default_pg/0//cpu//0/0"),
    ["ranks_missing", "rendezvous", "cascade", "worker_lost"],
  ],
  [
    "the store: nobody listens",
    raised(
      "DistNetworkError",
      "The client socket has timed out after 60000ms while trying to connect to (127.0.0.1, 4711).",
    ),
    ["store_unreachable", "rendezvous", "cascade", "worker_lost"],
  ],
  [
    "the store: its host went",
    raised(
      "DistNetworkError",
      "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown?",
    ),
    ["store_lost", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "the store: the port is taken",
    raised("DistNetworkError", "The server socket has failed to listen on any local network address. EADDRINUSE"),
    ["port_taken", "rendezvous", "root", "worker_lost"],
  ],
  [
    "vLLM, dead",
    raised("EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause."),
    ["vllm_dead", "engine_lost", "root", "worker_lost"],
  ],
  [
    "vLLM, dead of something that its log tells",
    raised("EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause.", {
      log: ["(EngineCore pid=9) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."],
    }),
    ["cuda_out_of_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "vLLM, did not start",
    raised("RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {}", {
      during: "start",
    }),
    ["vllm_init_failed", "engine_start", "root", "infrastructure"],
  ],
  [
    "vLLM, no memory for its cache",
    raised("RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {}", {
      during: "start",
      log: ["ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"],
    }),
    ["vllm_cache_memory", "device_memory", "root", "out_of_memory"],
  ],
  [
    "vLLM, a worker died",
    raised("RuntimeError", "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."),
    ["vllm_worker_died", "engine_lost", "root", "worker_lost"],
  ],
  [
    "vLLM, a call hangs",
    raised("TimeoutError", "RPC call to execute_model timed out."),
    ["vllm_rpc_timeout", "hang", "root", "no_progress"],
  ],
  [
    "an import",
    raised("ModuleNotFoundError", "No module named 'deepspeed'", { cause: "import_error", during: "start" }),
    ["told_import_error", "import_error", "root", "infrastructure"],
  ],
  [
    "code of the user",
    raised("UserCodeError", "reward.py:3: KeyError: 'answer'", { cause: "user_code" }),
    ["told_user_code", "user_code", "root", "user_code"],
  ],
  [
    "a broken input",
    raised("BadDataError", "Cannot read artifact 00 because it is not there", { cause: "bad_data" }),
    ["told_bad_data", "bad_data", "root", "bad_data"],
  ],
  [
    "a loss that is not a number",
    raised("NonFiniteError", "non_finite: Cannot step because the loss is not finite: first at node 3", {
      cause: "bad_data",
    }),
    ["non_finite", "non_finite", "root", "bad_data"],
  ],
  [
    "a checkpoint with another hash",
    raised("BadDataError", "Cannot open '/c' because its file 'x' is not the recorded one: sha256 is 1", {
      cause: "bad_data",
    }),
    ["checkpoint_unreadable", "checkpoint_damaged", "root", "infrastructure"],
  ],
  [
    "a checkpoint that torch cannot read",
    raised("RuntimeError", "PytorchStreamReader failed reading zip archive: failed finding central directory"),
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
    raised("DiskFullError", "Cannot write '/ckpt/x' because its disk is full", { cause: "disk_full" }),
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
    evidence({ cause: "exit", exception: null, message: "ended with exit code 143", exit_code: 143 }),
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

Deno.test("classify() reads every case of the catalogue as it must be read", () => {
  const read = CASES.map(([name, given]) => {
    const { observed, kind, role } = classify(given);
    return [name, observed, kind, role, POLICY[kind].cause];
  });
  deepStrictEqual(read, CASES.map(([name, , wanted]) => [name, ...wanted]));
});

Deno.test("every sign is in the catalogue's cases, and every kind has a sign", () => {
  const seen = new Set(CASES.map(([, , [observed]]) => observed));
  const byAgent = ["told_cancelled", "told_timeout", "silent_rank"]; // Tested below, and in real_agent_test.
  const wanted = [...SIGNS.map(({ name }) => name), ...Object.keys(TEXTLESS)];
  const rare = ["nvlink", "host_allocation", "collective_mismatch", "nccl_cuda_error", "cuda_error"];
  deepStrictEqual(wanted.filter((name) => !seen.has(name) && ![...byAgent, ...rare].includes(name)), []);
  const kinds = new Set([...SIGNS.map(({ kind }) => kind), ...Object.values(TEXTLESS)]);
  deepStrictEqual(Object.keys(POLICY).filter((kind) => !kinds.has(kind as FailureKind)), []);
});

Deno.test("POLICY gives every kind one of the engine's causes; what repeats never restarts", () => {
  for (const [kind, { cause, action }] of Object.entries(POLICY)) {
    ok(CAUSES.includes(cause), kind);
    if (cause === "user_code" || cause === "bad_data") strictEqual(action, "stop", kind);
  }
  deepStrictEqual(Object.entries(POLICY).filter(([, { counted }]) => !counted).map(([kind]) => kind), [
    "preempted",
    "operator_kill",
  ]);
});

const scene = { during: "operation", ranks: 4 } as const;
const peer = (rank: number, at_ms: number) =>
  failureReport({ rank, at_ms, message: "[gloo] Connection closed by peer [127.0.0.1]:1" });
const waited = (rank: number, at_ms: number) =>
  failureReport({ rank, at_ms, message: "[gloo] Timed out waiting 6000ms for recv operation to complete" });
const roles = ({ judged }: ReturnType<typeof diagnose>) =>
  judged.map(({ report, verdict }) => [report.rank, verdict.observed, verdict.role]);

Deno.test("diagnose() takes the rank at fault, not the peers and waiters that spoke first", () => {
  const reports = [
    peer(0, 1),
    waited(1, 2),
    failureReport({ rank: 2, cause: "signal", exception: null, signal: "SIGSEGV", at_ms: 30 }),
    failureReport({ rank: 3, at_ms: 40, exception: "ValueError", message: "no" }),
  ];
  const diagnosis = diagnose(reports, scene);
  strictEqual(diagnosis.root.report.rank, 2);
  deepStrictEqual(roles(diagnosis), [
    [0, "peer_closed", "cascade"],
    [1, "gloo_timeout", "cascade"],
    [2, "crash_signal", "root"],
    [3, "exception", "root"],
  ]);
});

Deno.test("diagnose() takes the silent rank where every other one only waited", () => {
  const diagnosis = diagnose([waited(0, 5), waited(1, 4), waited(3, 6)], scene);
  deepStrictEqual([diagnosis.root.report.rank, diagnosis.root.verdict.observed], [2, "silent_rank"]);
  ok(/3 ranks waited for it/.test(diagnosis.root.report.message));
});

Deno.test("diagnose() takes the silent rank that others name", () => {
  const barrier = failureReport({ rank: 0, message: "[Rank 0]: Ranks 3 failed to pass monitoredBarrier in 4000 ms" });
  strictEqual(diagnose([barrier, peer(1, 2)], scene).root.report.rank, 3);
});

Deno.test("diagnose() takes a rank that others name before earlier ones", () => {
  const remote = failureReport({ rank: 1, at_ms: 9, message: "remote error detected from rank: 2" });
  const reports = [peer(0, 1), remote, peer(2, 5), peer(3, 2)];
  strictEqual(diagnose(reports, scene).root.report.rank, 2);
  strictEqual(diagnose([peer(0, 3), peer(1, 2), peer(2, 5), peer(3, 4)], scene).root.report.rank, 1);
});

Deno.test("diagnose() never takes a teardown for the root while anything else spoke", () => {
  const aborted = failureReport({ rank: 0, at_ms: 1, message: "NCCL communicator was aborted on rank 0." });
  const cancelled = failureReport({ rank: 1, at_ms: 2, cause: "cancelled" });
  strictEqual(diagnose([aborted, cancelled, peer(2, 9), waited(3, 10)], scene).root.report.rank, 2);
});

Deno.test("diagnose() refuses to diagnose without a report", () => {
  throws(() => diagnose([], scene), /there is no report/);
});

Deno.test("fingerprint() is the same for the same failure of another time, and another for another operation", () => {
  const at = (ms: number, op: string) => {
    const message = `Timed out waiting ${ms}ms for recv operation to complete at 0x7f${ms}`;
    return fingerprint(diagnose([failureReport({ message })], { ...scene, ranks: 1 }).root, op);
  };
  strictEqual(at(6000, "train"), at(8000, "train"));
  ok(at(6000, "train") !== at(6000, "score"));
});
