/** The functions that a printed torch module may need; only those that it calls are printed. */
export const TORCH_WORDS: Record<string, string> = {
  masked: `def masked(x, mask):
    """0 where it is masked, before any operation: no value and no gradient comes from there."""
    return torch.where(mask, x if x.dim() == mask.dim() else x.unsqueeze(-1), 0.0)`,
  per_sequence_sum: `def per_sequence_sum(x, mask):
    """[B, T] -> [B]"""
    return torch.where(mask, x, 0.0).sum(-1)`,
  per_sequence_mean: `def per_sequence_mean(x, mask):
    """[B, T] -> [B]: over the unmasked tokens."""
    return torch.where(mask, x, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)`,
  spread: `def spread(x, mask):
    """[B] -> [B, T]: to each token of its sequence."""
    return torch.where(mask, x.unsqueeze(-1), 0.0)`,
  per_group: `def per_group(length, group):
    """[B] -> [B]: the sum over its group."""
    return torch.stack([length[group == own].sum() for own in group])`,
  total: `def total(x, mask):
    """The sum over the whole step."""
    return torch.where(mask, x, 0.0).sum()`,
  whole: `def whole(x, mask, known=None):
    """The sum over the whole step as a number, without gradient."""
    return total(x.detach(), mask).item() if known is None else known`,
};

type Text = (a: string, b: string) => string;

/** Operations on tensors. The others are printed as operators, or by the printer itself. */
export const ON_TENSORS: Record<string, Text> = {
  exp: (a) => `torch.exp(${a})`,
  log: (a) => `torch.log(${a})`,
  square: (a) => `torch.square(${a})`,
  sigmoid: (a) => `torch.sigmoid(${a})`,
  logSigmoid: (a) => `torch.nn.functional.logsigmoid(${a})`,
  minimum: (a, b) => `torch.minimum(${a}, ${b})`,
  maximum: (a, b) => `torch.maximum(${a}, ${b})`,
};

/** The same on numbers. */
export const ON_NUMBERS: Record<string, Text> = {
  exp: (a) => `math.exp(${a})`,
  log: (a) => `math.log(${a})`,
  square: (a) => `${a} ** 2`,
  sigmoid: (a) => `1 / (1 + math.exp(-${a}))`,
  logSigmoid: (a) => `-math.log1p(math.exp(-${a}))`,
  minimum: (a, b) => `min(${a}, ${b})`,
  maximum: (a, b) => `max(${a}, ${b})`,
  lt: (a, b) => `float(${a} < ${b})`,
  le: (a, b) => `float(${a} <= ${b})`,
};

/** Operations that are printed as operators, on tensors and numbers alike. */
export const SIGNS: Record<string, string> = { add: "+", sub: "-", mul: "*", div: "/" };
