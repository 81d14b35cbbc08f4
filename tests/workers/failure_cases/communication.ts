import { died, type FailureCase, raised } from "./evidence.ts";

const WATCHDOG =
  "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, " +
  "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.";
const AFTER_WATCHDOG =
  "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA " +
  "kernels, subsequent GPU operations might run on corrupted/incomplete data. To avoid data " +
  "inconsistency, we are taking the entire process down.";
const NCCL = "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, ";

/** Failures of NCCL, gloo and the store that ranks meet at. */
export const COMMUNICATION_CASES: FailureCase[] = [
  [
    "NCCL watchdog, torch 2.5 to 2.15",
    died("SIGABRT", {
      log: [`[rank1]:[E] [Rank 1] ${WATCHDOG}`, AFTER_WATCHDOG, "terminate called after throwing"],
    }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch to 2.4",
    died("SIGABRT", {
      log: ["Timeout at NCCL work: 12, last enqueued NCCL work: 13, last completed NCCL work: 11."],
    }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch 2.5",
    died("SIGABRT", {
      log: [
        "Exception (either an error or timeout) detected by watchdog at work: 12, last enqueued",
      ],
    }),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL watchdog, detail of torch 2.15",
    died("SIGABRT", {
      log: [
        "failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 13",
      ],
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
      log: [
        "[PG ID 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
      ],
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
      `${NCCL}remote process exited or there was a network error, NCCL version 2.30.4\n` +
        "ncclRemoteError: A call failed possibly due to a network error or a remote process " +
        "exiting prematurely.\nLast error:\n" +
        "socketProgress: Connection closed by remote peer node1<4711>",
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
    raised(
      "DistBackendError",
      `${NCCL}unhandled system error (run with NCCL_DEBUG=INFO for details)`,
      {
        during: "start",
      },
    ),
    ["nccl_system_error_at_start", "misuse", "root", "infrastructure"],
  ],
  [
    "NCCL, internal error",
    raised(
      "DistBackendError",
      `${NCCL}internal error - please report this issue to the NCCL developers`,
    ),
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
    raised(
      "RuntimeError",
      `NCCL communicator was aborted on rank 1. Original reason for failure was: ${WATCHDOG}`,
    ),
    ["nccl_watchdog_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "NCCL, aborted",
    raised("RuntimeError", "NCCL communicator was aborted on rank 1."),
    ["collective_aborted", "peer_lost", "teardown", "worker_lost"],
  ],
  [
    "NCCL, the CUDA error behind it in the log",
    raised(
      "DistBackendError",
      `${NCCL}unhandled cuda error (run with NCCL_DEBUG=INFO for details)`,
      {
        log: [
          "node1:77:99 [0] misc/strongstream.cc:53 NCCL WARN Cuda failure 214 " +
          "'uncorrectable ECC error encountered'",
        ],
      },
    ),
    ["cuda_ecc", "device_fault", "root", "infrastructure"],
  ],
  [
    "NCCL, InfiniBand",
    died("SIGABRT", {
      log: [
        "NCCL WARN NET/IB: Got completion from peer 10.0.0.2 with status=12 opcode=0 " +
        "vendor err 129",
      ],
    }),
    ["infiniband", "network", "root", "infrastructure"],
  ],
  [
    "gloo, peer gone",
    raised(
      "RuntimeError",
      "[../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:4711",
    ),
    ["peer_closed", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "gloo, peer reset",
    raised(
      "RuntimeError",
      "[gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: Connection reset by peer",
    ),
    ["peer_closed", "peer_lost", "cascade", "worker_lost"],
  ],
  [
    "gloo, waited",
    raised(
      "RuntimeError",
      "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation " +
        "to complete",
    ),
    ["gloo_timeout", "collective_timeout", "cascade", "timeout"],
  ],
  [
    "gloo, every operation after it",
    raised(
      "RuntimeError",
      "[gloo/transport/tcp/pair.cc:1] Application timeout caused pair closure",
    ),
    ["collective_aborted", "peer_lost", "teardown", "worker_lost"],
  ],
  [
    "gloo, mismatch aborts",
    died("SIGABRT", {
      log: [
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
        "  what():  [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 668 vs 4. " +
        "distributed collective mismatch in your code?",
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
    raised(
      "DistNetworkError",
      "The server socket has failed to listen on any local network address. EADDRINUSE",
    ),
    ["port_taken", "rendezvous", "root", "worker_lost"],
  ],
];
