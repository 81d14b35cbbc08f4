import { type Expression, type ExpressionNode, type Kind, operands } from "../../data/mod.ts";
import { liveModel } from "./inputs.ts";
import { gradients } from "./rules.ts";
import { ON_NUMBERS, ON_TENSORS, SIGNS, TORCH_WORDS } from "./torch_words.ts";

/**
 * A loss as a standalone Python module that needs only torch: one whole optimizer step, padded. Its
 * loss and gradient equal those of the trainer's interpreter bit for bit.
 */
export function torchModule(expression: Expression, { title }: { title: string }): string {
  const body = new Body(expression).lines();
  const text = body.join("\n");
  const names = Object.keys(TORCH_WORDS);
  const used = names.filter((name) =>
    text.includes(`${name}(`) || (name === "total" && text.includes("whole("))
  );
  const parts = [
    `"""\n${describe(expression, title)}\n"""`,
    [...(text.includes("math.") ? ["import math", ""] : []), "import torch"].join("\n"),
    ...used.map((name) => `\n${TORCH_WORDS[name]}`),
    `\ndef loss(inputs, mask, *, group=None, coef=None, sums=None):\n${
      body.map((line) => `    ${line}`).join("\n")
    }`,
  ];
  return parts.join("\n\n") + "\n";
}

const SHAPES: Record<Kind, string> = { token: "[B, T]", sequence: "[B]", pair: "[P]", step: "[]" };

/** Known from the mask and the groups alone. */
const LENGTHS: Record<string, string> = {
  length: "mask.sum(-1).to(dtype)",
  group_length: "per_group(mask.sum(-1), group).to(dtype)",
};
const COUNTS: Record<string, string> = {
  n_tokens: "mask.sum().item()",
  n_sequences: "some.sum().item()",
  n_groups: "len(set(group[some].tolist()))",
  n_pairs: "both.sum().item()",
};

function describe({ inputs, nodes }: Expression, title: string): string {
  const kindOf = (name: string) =>
    nodes.find((node) => node.op === "input" && node.name === name)!.kind;
  const columns = inputs.filter((name) => kindOf(name) !== "step" && !(name in LENGTHS));
  const coefs = inputs.filter((name) => name.startsWith("coef.")).map((name) =>
    name.slice("coef.".length)
  );
  const lines = [
    `${title}: the loss of one optimizer step, padded.`,
    "",
    "    loss(inputs, mask, ...) -> (loss, metrics)",
    "",
    "inputs, tensors of one type by name:",
    ...columns.map((name) =>
      `    ${name} ${SHAPES[kindOf(name)]}${liveModel(name) ? ", live: it has a gradient" : ""}`
    ),
    "mask [B, T]: True on the tokens that are trained. Other positions are never read.",
  ];
  if (inputs.includes("n_groups") || inputs.includes("group_length")) {
    lines.push("group [B]: equal for the samples of one prompt.");
  }
  if (coefs.length > 0) lines.push(`coef: numbers by name: ${coefs.join(", ")}.`);
  if (nodes.some(({ kind }) => kind === "pair")) {
    lines.push("Rows 2p and 2p + 1 are the chosen and the rejected sequence of pair p; P = B / 2.");
  }
  return lines.join("\n");
}

/** Expressions longer than this get a name. */
const TEXT_MAX = 48;

/** As an operand: in brackets unless it is one name, number, call or index. */
function inner(text: string): string {
  let outside = text;
  for (let before = ""; before !== outside;) {
    [before, outside] = [outside, outside.replace(/\([^()]*\)|\[[^[\]]*\]/g, "")];
  }
  return /^[\w.]*$/.test(outside) ? text : `(${text})`;
}

/** The statements of the function. */
class Body {
  readonly #nodes: readonly ExpressionNode[];
  readonly #flow: readonly boolean[];
  readonly #uses: number[];
  readonly #lines: string[] = [];
  readonly #known = new Map<number, string>();
  #named = 0;
  #inLoss = true;

  constructor(readonly expression: Expression) {
    this.#nodes = expression.nodes;
    this.#flow = gradients(expression.nodes);
    this.#uses = expression.nodes.map(() => 0);
    for (const node of expression.nodes) for (const arg of operands(node)) this.#uses[arg]!++;
  }

  lines(): string[] {
    return renumbered(this.#statements());
  }

  #statements(): string[] {
    const { loss, metrics } = this.expression;
    const value = this.#share(loss);
    this.#inLoss = false;
    const measured = Object.entries(metrics).map(([name, root]) =>
      `    ${JSON.stringify(name)}: ${this.#number(root)},`
    );
    const lines = [
      ...this.#lines,
      ...(measured.length > 0 ? ["metrics = {", ...measured, "}"] : []),
      `return ${value}, ${measured.length > 0 ? "metrics" : "{}"}`,
    ];
    return [...this.#inputLines(lines.join("\n")), ...lines];
  }

  /** What the statements read: masks, counts, and the inputs with 0 at masked positions. */
  #inputLines(text: string): string[] {
    const { inputs } = this.expression;
    const columns = inputs.filter((name) => !(name in COUNTS) && !name.startsWith("coef."));
    const read = columns.map((name) => {
      const { kind } = this.#nodes.find((node) => node.op === "input" && node.name === name)!;
      if (name in LENGTHS) return `${name} = ${LENGTHS[name]}  # [B]`;
      return `${name} = masked(inputs["${name}"], ${MASKS[kind as keyof typeof MASKS]})  # ${
        SHAPES[kind]
      }`;
    });
    const counts = inputs.filter((name) => name in COUNTS).map((name) =>
      `${name} = ${COUNTS[name]}`
    );
    const after = [...counts, ...read, text].join("\n");
    const live = inputs.find((name) => liveModel(name) !== null)!;
    const both = /\bboth\b/.test(after);
    return [
      ...(/\bdtype\b/.test(after) ? [`dtype = inputs["${live}"].dtype`] : []),
      ...(both || /\bsome\b/.test(after)
        ? ["some = mask.any(-1)  # [B] sequences with a token"]
        : []),
      ...(both ? ["both = some[0::2] & some[1::2]  # [P]"] : []),
      ...(/\bsums\b/.test(after)
        ? ["sums = sums or {}  # of the whole step, where this is a part of one"]
        : []),
      ...counts,
      ...read,
    ];
  }

  /** A step value with gradient. */
  #share(i: number): string {
    const node = this.#nodes[i]!;
    if (!this.#flow[i]) return this.#number(i);
    if (node.op === "stepSum") return `total(${this.#summed(node.args[0])})`;
    const args = this.#inOrder(operands(node).map((arg) => () => this.#share(arg)));
    if (node.op === "neg") return `-${inner(args[0]!)}`;
    if (node.op === "where") {
      return `${inner(args[1]!)} if ${inner(args[0]!)} != 0 else ${inner(args[2]!)}`;
    }
    return `${inner(args[0]!)} ${SIGNS[node.op]!} ${inner(args[1]!)}`;
  }

  /** The summed value, and the mask of its kind. */
  #summed(i: number): string {
    return `${this.#tensor(i)}, ${MASKS[this.#nodes[i]!.kind as keyof typeof MASKS]}`;
  }

  /** A step value without gradient: a number. */
  #number(i: number): string {
    const known = this.#known.get(i);
    if (known !== undefined) return known;
    const node = this.#nodes[i]!;
    if (node.op === "scalar") return floatText(node.value);
    if (node.op === "input") {
      return node.name.startsWith("coef.") ? `coef["${node.name.slice(5)}"]` : node.name;
    }
    if (node.op === "stepSum") return this.#sum(i, node.args[0]);
    const text = this.#onNumbers(node);
    return this.#uses[i]! < 2 || inner(text) === text ? text : this.#name(i, text);
  }

  #onNumbers(node: ExpressionNode): string {
    const args = operands(node).map((arg) => this.#number(arg));
    if (node.op === "neg") return `-${inner(args[0]!)}`;
    if (node.op in SIGNS) return `${inner(args[0]!)} ${SIGNS[node.op]} ${inner(args[1]!)}`;
    if (node.op === "where") {
      return `${inner(args[1]!)} if ${inner(args[0]!)} != 0 else ${inner(args[2]!)}`;
    }
    if (node.op === "clamp") {
      return `min(max(${args[0]}, ${boundText(node.lo, "-math.inf")}), ${
        boundText(node.hi, "math.inf")
      })`;
    }
    if (node.op === "detach") return args[0]!;
    return ON_NUMBERS[node.op]!(inner(args[0]!), args[1] === undefined ? "" : inner(args[1]));
  }

  /** A sum over the step as a number. A sum that scales the gradient has a separate name. */
  #sum(i: number, arg: number): string {
    const summed = this.#summed(arg);
    if (!this.#inLoss) return `whole(${summed})`;
    const name = `s${i}`;
    this.#lines.push(`${name} = whole(${summed}, sums.get("${name}"))`);
    this.#known.set(i, name);
    return name;
  }

  /** A token, sequence or pair value. */
  #tensor(i: number): string {
    const known = this.#known.get(i);
    if (known !== undefined) return known;
    const node = this.#nodes[i]!;
    if (node.op === "input") return node.name;
    const text = this.#operation(node);
    return this.#uses[i]! < 2 && text.length <= TEXT_MAX ? text : this.#name(i, text);
  }

  #name(i: number, text: string): string {
    const name = `v${++this.#named}`;
    this.#lines.push(`${name} = ${text}  # ${SHAPES[this.#nodes[i]!.kind]}`);
    this.#known.set(i, name);
    return name;
  }

  #operation(node: ExpressionNode): string {
    const { op } = node;
    if (op === "perSequenceSum") return `per_sequence_sum(${this.#tensor(node.args[0])}, mask)`;
    if (op === "perSequenceMean") return `per_sequence_mean(${this.#tensor(node.args[0])}, mask)`;
    if (op === "chosen") return `${inner(this.#tensor(node.args[0]))}[0::2]`;
    if (op === "rejected") return `${inner(this.#tensor(node.args[0]))}[1::2]`;
    const boxed = op in ON_TENSORS
      ? [0, 1]
      : op === "div"
      ? [0]
      : op === "where"
      ? this.#boxedOfWhere(node.args)
      : [];
    const args = operands(node).map((arg, at) => () =>
      boxed.includes(at) ? this.#boxed(node, arg) : this.#operand(node, arg)
    );
    const [a, b, c] = this.#inOrder(args) as [string, string, string];
    if (op === "neg") return `-${inner(a)}`;
    if (op === "detach") return `${inner(a)}.detach()`;
    if (op === "clamp") {
      return `torch.clamp(${a}, ${boundText(node.lo, "None")}, ${boundText(node.hi, "None")})`;
    }
    if (op === "where") return `torch.where(${inner(a)} != 0, ${b}, ${c})`;
    if (op === "lt") return `(${inner(a)} < ${inner(b)}).to(dtype)`;
    if (op === "le") return `(${inner(a)} <= ${inner(b)}).to(dtype)`;
    return op in SIGNS ? `${inner(a)} ${SIGNS[op]} ${inner(b)}` : ON_TENSORS[op]!(a, b);
  }

  /**
   * Texts of operands, computed from left to right: if a later operand needs statements, the
   * earlier ones are named first. Torch accumulates gradients in the order of computation, and the
   * interpreter computes in the order of nodes.
   */
  #inOrder(renderers: (() => string)[]): string[] {
    const texts: string[] = [];
    for (const render of renderers) {
      const mark = this.#lines.length;
      const text = render();
      if (this.#lines.length > mark) {
        const open = [...texts.keys()].filter((i) => !/^[\w.]+$/.test(texts[i]!));
        const named = open.map((i) => [i, `v${++this.#named}`] as const);
        this.#lines.splice(mark, 0, ...named.map(([i, name]) => `${name} = ${texts[i]}`));
        for (const [i, name] of named) texts[i] = name;
      }
      texts.push(text);
    }
    return texts;
  }

  /**
   * A condition is a tensor, and so is one of the choices: from two numbers torch creates its
   * default type.
   */
  #boxedOfWhere([, , otherwise]: readonly number[]): number[] {
    return this.#nodes[otherwise!]!.kind === "step" ? [0, 1] : [0];
  }

  /**
   * An operand of a tensor operation: a number stays a number, a sequence's value is spread over
   * its tokens.
   */
  #operand(node: ExpressionNode, arg: number): string {
    const { kind } = this.#nodes[arg]!;
    if (kind === "step") return this.#number(arg);
    const text = this.#tensor(arg);
    return kind === "sequence" && node.kind === "token" ? `spread(${text}, mask)` : text;
  }

  /** The same if torch accepts only tensors. */
  #boxed(node: ExpressionNode, arg: number): string {
    const text = this.#operand(node, arg);
    return this.#nodes[arg]!.kind === "step" ? `torch.tensor(${text}, dtype=dtype)` : text;
  }
}

/** v1, v2, ... in the order of their statements. */
function renumbered(lines: string[]): string[] {
  const order = lines.flatMap((line) => /^(v\d+) = /.exec(line)?.[1] ?? []);
  const names = new Map(order.map((name, i) => [name, `v${i + 1}`]));
  return lines.map((line) => line.replace(/\bv\d+\b/g, (name) => names.get(name)!));
}

const MASKS = { token: "mask", sequence: "some", pair: "both" };

const floatText = (value: number) => (Number.isInteger(value) ? value.toFixed(1) : String(value));
const boundText = (
  bound: number | null,
  none: string,
) => (bound === null ? none : floatText(bound));
