/**
 * Our names for settings of TRL, verl, OpenRLHF, FeynRL and slime: a path, or a sentence if there
 * is no such setting. Of several paths, the first that the flow has applies.
 */
export const PEER_NAMES: Record<string, readonly string[] | string> = {
  learning_rate: ["trainer.optimizer.lr", "online.optimizer.lr"],
  actor_learning_rate: ["trainer.optimizer.lr", "online.optimizer.lr"],
  critic_learning_rate: ["value_model.optimizer.lr"],
  adam_beta1: ["trainer.optimizer.betas", "online.optimizer.betas"],
  adam_beta2: ["trainer.optimizer.betas", "online.optimizer.betas"],
  adam_epsilon: ["trainer.optimizer.eps", "online.optimizer.eps"],
  max_grad_norm: ["trainer.optimizer.clip_grad_norm", "online.optimizer.clip_grad_norm"],
  max_norm: ["trainer.optimizer.clip_grad_norm", "online.optimizer.clip_grad_norm"],
  lr_scheduler_type: ["trainer.optimizer.schedule.name", "online.optimizer.schedule.name"],
  warmup_steps: [
    "trainer.optimizer.schedule.warmup_steps",
    "online.optimizer.schedule.warmup_steps",
  ],
  max_steps: ["rounds", "online.rounds"],
  total_epochs: ["rounds", "online.rounds"],
  num_train_epochs: ["rounds", "online.rounds"],
  num_iterations: ["trainer.epochs_per_batch"],
  ppo_epochs: ["trainer.epochs_per_batch"],
  ppo_mini_batch_size: ["trainer.updates_per_batch"],
  gradient_accumulation_steps: ["trainer.micro_batch_tokens_max"],
  per_device_train_batch_size: ["trainer.micro_batch_tokens_max"],
  micro_train_batch_size: ["trainer.micro_batch_tokens_max"],
  ppo_micro_batch_size_per_gpu: ["trainer.micro_batch_tokens_max"],
  train_batch_size: [
    "prompts_per_round",
    "rows_per_round",
    "pairs_per_round",
    "online.prompts_per_round",
  ],
  rollout_batch_size: ["prompts_per_round", "online.prompts_per_round"],
  num_generations: ["samples_per_prompt", "online.samples_per_prompt"],
  n_samples_per_prompt: ["samples_per_prompt", "online.samples_per_prompt"],
  group_size: ["samples_per_prompt", "online.samples_per_prompt"],
  max_completion_length: ["sampler.tokens_max"],
  max_new_tokens: ["sampler.tokens_max"],
  max_tokens: ["sampler.tokens_max"],
  response_length: ["sampler.tokens_max"],
  max_response_length: ["sampler.tokens_max"],
  max_prompt_length: ["data.prompt_tokens_max"],
  prompt_max_len: ["data.prompt_tokens_max"],
  max_length: ["sampler.max_model_len"],
  max_seq_length: ["sampler.max_model_len"],
  max_model_length: ["sampler.max_model_len"],
  vllm_gpu_memory_utilization:
    "set sampler.vllm: { gpu_memory_utilization: ... }, or sampler.kv_cache_gib",
  gpu_memory_utilization:
    "set sampler.vllm: { gpu_memory_utilization: ... }, or sampler.kv_cache_gib",
  tensor_parallel_size:
    "set sampler.replicas for more samplers; one sampler on several GPUs is not there yet",
  vllm_tensor_parallel_size:
    "set sampler.replicas for more samplers; one sampler on several GPUs is not there yet",
  use_vllm: "set sampler.engine: vllm",
  num_processes: ["trainer.ranks"],
  nproc_per_node: ["trainer.ranks"],
  zero_stage: ["trainer.zero"],
  deepspeed: "set trainer: { engine: deepspeed, zero: 2 }",
  bf16: "set trainer.dtype: bfloat16",
  fp16: "set trainer.dtype: bfloat16; float16 is not there yet",
  torch_dtype: ["trainer.dtype"],
  mask_truncated_completions: "set algorithm: { name: ..., mask_truncated: true }",
  beta: "set algorithm: { kl_coef: ... } to weigh a KL, or algorithm: { name: dpo, beta: ... }",
  kl_coef: "set algorithm: { name: ..., kl_coef: ... }",
  init_kl_coef: "set algorithm: { name: ..., kl_coef: ... }",
  kl_loss_coef: "set algorithm: { name: ..., kl_coef: ... }",
  epsilon: "set algorithm: { name: ..., clip_low: ..., clip_high: ... }",
  cliprange: "set algorithm: { name: ..., clip_low: ..., clip_high: ... }",
  clip_ratio: "set algorithm: { name: ..., clip_low: ..., clip_high: ... }",
  eps_clip: "set algorithm: { name: ..., clip_low: ..., clip_high: ... }",
  epsilon_high: "set algorithm: { name: ..., clip_high: ... }",
  loss_type: "set algorithm: { name: ..., aggregation: ... }",
  loss_agg_mode: "set algorithm: { name: ..., aggregation: ... }",
  gamma: "set algorithm: { name: ..., gamma: ... }, where the algorithm has one",
  lam: "set algorithm: { name: ppo, lambda: ... }",
  reward_funcs: ["reward"],
  reward_fn: ["reward"],
  reward_function: ["reward"],
  reward_weights: "give each entry its weight: reward: [{ name: ..., weight: 0.5 }]",
  model_name_or_path: ["model.path"],
  model_path: ["model.path"],
  pretrain: ["model.path"],
  dataset: ["data.train"],
  train_files: ["data.train"],
  val_files: ["data.eval"],
  prompt_data: ["data.train"],
  output_dir:
    "give the home on the command line: --home DIR; the model is then in DIR/runs/RUN/final",
  ckpt_path:
    "give the home on the command line: --home DIR; the model is then in DIR/runs/RUN/final",
  run_name: ["name"],
  experiment_name: ["name"],
  save_steps: ["checkpoints.every_rounds"],
  save_freq: ["checkpoints.every_rounds"],
  save_total_limit: ["checkpoints.keep_last"],
  max_ckpt_num: ["checkpoints.keep_last"],
  eval_steps: "evaluation runs before the first round and after the last: set evaluate",
  report_to: "metrics are in runs/RUN/metrics.jsonl of the home; trackers are not there yet",
  use_wandb: "metrics are in runs/RUN/metrics.jsonl of the home; trackers are not there yet",
  logging_steps: "every round is logged: runs/RUN/metrics.jsonl of the home",
  use_peft: "set trainer: { lora: { rank: 16 } }",
  lora_r: ["trainer.lora.rank"],
  lora_rank: ["trainer.lora.rank"],
  lora_alpha: ["trainer.lora.alpha"],
  target_modules: ["trainer.lora.targets"],
  packing_samples: ["trainer.packing"],
};

/** ` (...)` with our name for a peer's setting in a flow that has these paths, else nothing. */
export function peerHint(key: string, everywhere: readonly string[]): string {
  const known = Object.hasOwn(PEER_NAMES, key) ? PEER_NAMES[key]! : null;
  if (known === null) return "";
  if (typeof known === "string") return ` (${known})`;
  const here = known.find((path) => everywhere.includes(path));
  return here === undefined ? "" : ` (here it is ${here})`;
}
