#!/usr/bin/env bash
# What Holdfast does on this machine's GPU, step by step. Each step stands alone and prints what it
# did and its seconds; the script fails if one of them failed.
#
#   tests/e2e/gpu_check.sh [STEP ...]      all steps without arguments
#
# GPU_CHECK_PYTHON   interpreter of the workers; default: the managed environments, where they are
# GPU_CHECK_OUT      directory of logs and homes; default: .holdfast/gpu_check
# GPU_CHECK_DEVICE   cuda, or cpu to try the script itself
# GPU_CHECK_SMALL    1: a model of a few million parameters and short runs
# GPU_CHECK_DENO     the command; default: deno if it is on PATH, else npx -y deno@2
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

STEPS=(machine torch zero1 zero2 zero3 learn learn32 size size_zero big workers)
OUT=${GPU_CHECK_OUT:-.holdfast/gpu_check}
DEVICE=${GPU_CHECK_DEVICE:-cuda}
SMALL=${GPU_CHECK_SMALL:-0}
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 1
export NO_COLOR=1 PYTHONUNBUFFERED=1

if [ -n "${GPU_CHECK_DENO:-}" ]; then read -ra deno <<<"$GPU_CHECK_DENO"
elif command -v deno >/dev/null; then deno=(deno)
else deno=(npx -y deno@2); fi
rl() { "${deno[@]}" run -A --quiet cli/main.ts "$@"; }

# What every run gets besides. Without GPU_CHECK_PYTHON the first run makes the environments.
settings=(trainer.device="$DEVICE" sampler.device="$DEVICE")
python=${GPU_CHECK_PYTHON:-}
if [ -n "$python" ]; then
  settings+=(trainer.python="$python" sampler.python="$python")
  export HOLDFAST_PYTHON=$python
fi
tools() { # A Python with torch, and DeepSpeed where there is one.
  [ -n "$python" ] || python=$(ls -d .holdfast/env/{deepspeed,torch}_cuda-*/bin/python 2>/dev/null | head -1)
  [ -n "$python" ] || { echo "no Python: set GPU_CHECK_PYTHON, or run the step torch first"; return 1; }
}
home_of() { # A new home with the repository's environments.
  rm -rf "${OUT:?}/$1" && mkdir -p "$OUT/$1" .holdfast/env && ln -s "$PWD/.holdfast/env" "$OUT/$1/env"
}

machine() {
  nvidia-smi 2>&1 | head -20
  [ -n "$python" ] && "$python" - <<'P'
import importlib.metadata as m, platform
print("python", platform.python_version())
for name in ("torch", "transformers", "deepspeed", "peft", "numpy", "safetensors"):
    try: print(name, m.version(name))
    except m.PackageNotFoundError: print(name, "is not installed")
import torch
if torch.cuda.is_available(): print("CUDA", torch.version.cuda, "NCCL", torch.cuda.nccl.version(), torch.cuda.get_device_name(0))
P
  git rev-parse HEAD 2>/dev/null
  rl doctor --home "$OUT/doctor"
}

# The quickstart in small: killed, resumed from its record, and redone by `verify`.
killed() {
  local name=$1; shift
  home_of "$name"
  local run=(configs/quickstart_small.yaml --home "$OUT/$name" workers.grace_s=1 trainer.dtype=bfloat16 sampler.dtype=bfloat16 "${settings[@]}" "$@")
  HOLDFAST_FAULT=kill:engine@frame:135 rl run "${run[@]}" --id killed
  [ $? = 137 ] || { echo "the fault did not kill it"; return 1; }
  sleep 3
  rl resume killed --home "$OUT/$name" || return 1
  rl show killed --home "$OUT/$name" | grep -E '^(status|ledger|recovery|policy)'
  rl verify killed --home "$OUT/$name" || return 1
  rl run "${run[@]}" --id whole || return 1
  rl show whole --home "$OUT/$name" | grep -E '^(status|policy)'
  echo "-- killed and whole, compared (a GPU's sampler does not promise equal bits):"
  rl diff killed whole --home "$OUT/$name"
}
torch() { killed torch; }
zero1() { killed zero1 trainer.engine=deepspeed trainer.ranks=1 trainer.zero=1; }
zero2() { killed zero2 trainer.engine=deepspeed trainer.ranks=1 trainer.zero=2; }
zero3() { killed zero3 trainer.engine=deepspeed trainer.ranks=1 trainer.zero=3; }

# The quickstart itself.
learned() {
  local name=$1 dtype=$2; home_of "$name"
  local less=(); [ "$SMALL" = 1 ] && less=(online.rounds=2)
  rl run configs/quickstart.yaml --home "$OUT/$name" --id learn trainer.dtype="$dtype" sampler.dtype="$dtype" "${settings[@]}" "${less[@]}"
}
learn() { learned learn bfloat16; }
learn32() { learned learn32 float32; }

# A larger model of random weights. Each process is measured alone.
shape() { if [ "$SMALL" = 1 ]; then echo --layers 2 --width 128 --rows 8 --length 32 --steps 2 --tokens-max 64; fi; }
measure() { "$python" tests/e2e/gpu_measure.py "$@" --device "$DEVICE" $(shape) 2>>"$OUT/measure.log" | grep '^{' || { tail -5 "$OUT/measure.log"; return 1; }; }
model() { [ -f "$OUT/model/rows.jsonl" ] || measure model "$OUT/model"; }
size() {
  tools && model || return 1
  measure trainer "$OUT/model" && measure trainer "$OUT/model" --packing && measure sampler "$OUT/model" --length 256
}
size_zero() {
  tools && model || return 1
  local failed=0
  for zero in 1 2 3; do measure trainer "$OUT/model" --engine deepspeed --zero $zero || failed=1; done
  return $failed
}
# The same model in two runs: supervised, then GRPO; with the GPU's memory at its peak.
big() {
  tools && model || return 1
  home_of big
  local memory="$OUT/big_memory.txt" watch= code=0
  if [ "$DEVICE" = cuda ]; then
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 200 >"$memory" & watch=$!
  fi
  local tokens=16384 samples=16 length=256
  [ "$SMALL" = 1 ] && tokens=1024 samples=4 length=16
  local both=("${settings[@]}" model.path="$OUT/model/model" data.train.0.path="$OUT/model/rows.jsonl" trainer.dtype=bfloat16
    trainer.gradient_checkpointing=true trainer.micro_batch_tokens_max=$tokens sampler.dtype=bfloat16)
  rl run configs/sft.yaml --home "$OUT/big" --id sft "${both[@]}" rounds=6 trainer.optimizer.lr=3e-4 checkpoints.every_rounds=6 || code=1
  rl run configs/gsm8k_grpo.yaml --home "$OUT/big" --id grpo "${both[@]}" model.path="$OUT/big/runs/sft/final" data.eval.0.path="$OUT/model/rows.jsonl" \
    trainer.engine=torch trainer.ranks=1 trainer.zero=0 sampler.engine=huggingface sampler.tokens_max=$length rounds=3 samples_per_prompt=$samples \
    evaluate.problems=8 checkpoints.every_rounds=3 'reward.1={name: length, max: 1000, weight: 0.1}' || code=1
  [ -n "$watch" ] && kill "$watch" && echo "GPU memory at its peak: $(sort -n "$memory" | tail -1) MiB"
  rl verify grpo --home "$OUT/big" || code=1
  return $code
}

# The Python package's tests with their trainers and samplers on the device. Those that compare the
# worker's tensors with a model that they open on the CPU are left out.
workers() {
  tools || return 1
  local deepspeed=; "$python" -c 'import deepspeed' 2>/dev/null && deepspeed=$python
  HOLDFAST_TEST_DEVICE=$DEVICE HOLDFAST_FAST=1 HOLDFAST_TEST_DEEPSPEED_PYTHON=$deepspeed PYTHONPATH=workers/python:tests/python \
    "$python" -m pytest -v --no-header --maxfail=60 -p no:cacheprovider --tb=short \
    tests/python/test_gpu_{paths,memory}.py tests/python/trainer/test_trainer_{checkpoint,micro_batches,packing,numerics,dropout,scoring}.py tests/python/trainer/engines/test_trainer_{engine_torch,skipped_step}.py \
    tests/python/trainer/model/test_output_head.py tests/python/sampler/test_sampler_{huggingface,publication,slab}.py \
    --deselect tests/python/trainer/test_trainer_checkpoint.py::test_publish_writes_what_from_pretrained_opens
}

failed=()
for step in "${@:-${STEPS[@]}}"; do
  declare -F "$step" >/dev/null || { echo "no step '$step': ${STEPS[*]}"; exit 2; }
  began=$SECONDS
  echo "== $step"
  if ( "$step" ) >"$OUT/$step.log" 2>&1; then verdict=done; else verdict=FAILED failed+=("$step"); fi
  cat "$OUT/$step.log"
  echo "== $step: $verdict after $((SECONDS - began)) s"
done
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
