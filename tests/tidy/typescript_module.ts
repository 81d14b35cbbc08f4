/**
 * What the measures read of one TypeScript file, by Deno's own parser: the one that lint plugins
 * get.
 */

/** Names taken from another file of the repository; `all` where the whole module is taken. */
type Import = { from: string; names: string[] | "all" };
/** A function and where it stands; `lines` counts its first and its last line. */
type FunctionSpan = { name: string; line: number; lines: number };

export type SourceModule = {
  path: string;
  /** Every file that this one names, whether for values or for types alone. */
  imports: Import[];
  /** Names that stand in this file. */
  exports: string[];
  /** `export { imported as name } from "from"`. */
  reexports: { name: string; imported: string; from: string }[];
  /** Files of `export * from`. */
  stars: string[];
  functions: FunctionSpan[];
  /** Fields of object types that hold data and are spelled in camelCase: `NAME` with its line. */
  camel_fields: { name: string; line: number }[];
  /** Lines of `...{ a }` in an object and `...[a]` in a list: spreads that only save a line. */
  literal_spreads: number[];
  /** Lines of `...(c ? { a } : {})` and `...(c && { a })` in an object: fields are left out. */
  conditional_spreads: number[];
  /** Private functions and methods that are named once, where they are called. */
  called_once: FunctionSpan[];
  /** True if nothing of it is left at run time, so that nothing can be tested. */
  only_types: boolean;
};

type Node = Deno.lint.Node;
type Named = { type: string; name?: string; value?: unknown };
type Specifier = { type: string; imported?: Named; local?: Named; exported?: Named };

const TYPES_ONLY = new Set(["TSTypeAliasDeclaration", "TSInterfaceDeclaration"]);
const FUNCTIONS = ":matches(FunctionDeclaration, FunctionExpression, ArrowFunctionExpression)";

/** The repository's path of a relative specifier; null for a package. */
function resolved(from: string, specifier: unknown): string | null {
  if (typeof specifier !== "string" || !specifier.startsWith(".")) return null;
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

const nameOf = (node: Named | undefined): string => String(node?.name ?? node?.value ?? "");

/** Names that a pattern of a declaration binds: `a`, `{ a, b: c }`, `[a]`. */
function bound(pattern: unknown): string[] {
  const node = pattern as { type: string; name?: string } & Record<string, unknown>;
  switch (node?.type) {
    case "Identifier":
      return [node.name!];
    case "ObjectPattern":
      return (node.properties as Record<string, unknown>[]).flatMap((each) =>
        bound(each.value ?? each.argument)
      );
    case "ArrayPattern":
      return (node.elements as unknown[]).flatMap(bound);
    case "AssignmentPattern":
      return bound(node.left);
    case "RestElement":
      return bound(node.argument);
    default:
      return [];
  }
}

function declared(declaration: unknown): string[] {
  const node = declaration as { type: string; id?: Named; declarations?: { id: unknown }[] };
  if (node.declarations) return node.declarations.flatMap(({ id }) => bound(id));
  return node.id ? [nameOf(node.id)] : [];
}

/** Adds what one statement of the top level imports and exports. */
function readStatement(module: SourceModule, statement: Node): void {
  const node = statement as unknown as {
    type: string;
    source?: { value: unknown } | null;
    specifiers?: Specifier[];
    declaration?: unknown;
    exported?: Named | null;
  };
  const from = resolved(module.path, node.source?.value);
  const specifiers = node.specifiers ?? [];
  if (node.type === "ImportDeclaration" && from !== null) {
    const whole = specifiers.some(({ type }) => type === "ImportNamespaceSpecifier");
    const names = specifiers.map(({ type, imported }) =>
      type === "ImportDefaultSpecifier" ? "default" : nameOf(imported)
    );
    module.imports.push({ from, names: whole ? "all" : names });
  } else if (node.type === "ExportAllDeclaration" && from !== null) {
    module.imports.push({ from, names: node.exported ? "all" : [] });
    if (node.exported) module.exports.push(nameOf(node.exported));
    else module.stars.push(from);
  } else if (node.type === "ExportNamedDeclaration") {
    if (node.declaration) module.exports.push(...declared(node.declaration));
    for (const { local, exported } of specifiers) {
      if (from === null) module.exports.push(nameOf(exported));
      else module.reexports.push({ name: nameOf(exported), imported: nameOf(local), from });
    }
    if (from !== null) module.imports.push({ from, names: [] });
  } else if (node.type === "ExportDefaultDeclaration") module.exports.push("default");
}

/** Whether a statement of the top level leaves something to run. */
function runs(statement: Node): boolean {
  const node = statement as unknown as {
    type: string;
    exportKind?: string;
    declaration?: { type: string } | null;
  };
  if (node.type === "ImportDeclaration" || TYPES_ONLY.has(node.type)) return false;
  if (node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") {
    return node.declaration ? !TYPES_ONLY.has(node.declaration.type) : false;
  }
  return true;
}

/**
 * Deno hands a lint plugin nothing past an empty statement (`;` alone), which the formatter
 * removes. Such a file is refused, never taken for a short one.
 */
function checkWhole(path: string, rest: string): void {
  const code = rest.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "").trim();
  if (code === "") return;
  throw new SyntaxError(
    `Cannot read '${path}' because the parser stops before '${code.slice(0, 40)}'. Fix: deno fmt`,
  );
}

/**
 * The name by which a reader finds a function: its own, or that of what it is assigned or handed
 * to.
 */
function functionName(node: Node): string {
  const { id, parent } = node as unknown as {
    id?: Named | null;
    parent?: {
      type: string;
      id?: Named;
      key?: Named;
      callee?: Named & { property?: Named; object?: Named };
    };
  };
  if (id) return nameOf(id);
  if (parent?.callee) return `a function in ${nameOf(parent.callee.property ?? parent.callee)}()`;
  return nameOf(parent?.id ?? parent?.key) || "a function";
}

/**
 * Whether a field holds data and is spelled in camelCase. What is called (`onEvent`, `isRecorded`,
 * `(x) => y`) is spelled as functions are.
 */
function isCamelData(
  name: string,
  annotation: { typeAnnotation: { type: string } } | undefined,
): boolean {
  const called = annotation?.typeAnnotation.type === "TSFunctionType" || /^(on|is)[A-Z]/.test(name);
  return /^[a-z]+[A-Z]/.test(name) && !called;
}

/** Whether a spread of this value adds no field. */
function isNothing(value: unknown): boolean {
  const node = value as { type: string; properties?: unknown[]; name?: string; value?: unknown };
  if (node.type === "ObjectExpression") return node.properties!.length === 0;
  return node.type === "Literal" ? node.value === null : node.name === "undefined";
}

/** Whether one side of a condition adds fields and a different one adds none. */
function leavesOut(value: unknown): boolean {
  const node = value as { type: string; operator?: string } & Record<string, unknown>;
  if (node.type === "LogicalExpression") return node.operator === "&&";
  if (node.type !== "ConditionalExpression") return false;
  return [node.consequent, node.alternate].some((side) => isNothing(side) || leavesOut(side));
}

function readSpread(module: SourceModule, node: Deno.lint.SpreadElement, line: number): void {
  const { argument, parent } = node;
  const into = parent.type === "ObjectExpression" ? "ObjectExpression" : "ArrayExpression";
  if (argument.type === into && parent.type === into) module.literal_spreads.push(line);
  if (into === "ObjectExpression" && leavesOut(argument)) module.conditional_spreads.push(line);
}

/**
 * Reads one file. `path` is the repository's, with forward slashes. Works under `deno test` alone,
 * as lint plugins do.
 */
export function typescriptModule(path: string, source: string): SourceModule {
  const module: SourceModule = {
    path,
    imports: [],
    exports: [],
    reexports: [],
    stars: [],
    functions: [],
    camel_fields: [],
    literal_spreads: [],
    conditional_spreads: [],
    called_once: [],
    only_types: true,
  };
  const lineAt = (offset: number) => source.slice(0, offset).split("\n").length;
  const importWhole = (specifier: unknown) => {
    const from = resolved(path, specifier);
    if (from !== null) module.imports.push({ from, names: "all" });
  };
  const lineSpan = (node: Node) => {
    const line = lineAt(node.range[0]);
    return { line, lines: lineAt(node.range[1]) - line + 1 };
  };
  const names = new Map<string, number>();
  const count = (name: string) => void names.set(name, (names.get(name) ?? 0) + 1);
  const hidden: FunctionSpan[] = [];
  let end = 0;
  const visitor = {
    Program(node: Deno.lint.Program) {
      end = node.body.at(-1)?.range[1] ?? 0;
      for (const statement of node.body) readStatement(module, statement as Node);
      module.only_types = !node.body.some((statement) => runs(statement as Node));
    },
    ImportExpression: (node: Deno.lint.ImportExpression) =>
      importWhole((node.source as Named).value),
    TSImportType: (node: { argument?: { literal?: Named; value?: unknown } }) =>
      importWhole(node.argument?.literal?.value ?? node.argument?.value),
    TSPropertySignature(node: Deno.lint.TSPropertySignature) {
      const name = nameOf(node.key as Named);
      if (isCamelData(name, node.typeAnnotation)) {
        module.camel_fields.push({ name, line: lineAt(node.range[0]) });
      }
    },
    [FUNCTIONS](node: Node) {
      module.functions.push({ name: functionName(node), ...lineSpan(node) });
    },
    FunctionDeclaration(node: Deno.lint.FunctionDeclaration) {
      if (node.parent.type === "Program") {
        hidden.push({ name: nameOf(node.id!), ...lineSpan(node) });
      }
    },
    MethodDefinition(node: Deno.lint.MethodDefinition) {
      const { key } = node as unknown as { key: Named };
      if (key.type === "PrivateIdentifier") hidden.push({ name: nameOf(key), ...lineSpan(node) });
    },
    Identifier: (node: Deno.lint.Identifier) => count(node.name),
    PrivateIdentifier: (node: Deno.lint.PrivateIdentifier) => count(node.name),
    SpreadElement: (node: Deno.lint.SpreadElement) =>
      readSpread(module, node, lineAt(node.range[0])),
  } as Deno.lint.LintVisitor;
  Deno.lint.runPlugin({ name: "reader", rules: { read: { create: () => visitor } } }, path, source);
  checkWhole(path, source.slice(end));
  // Named twice: where it stands, and where it is called.
  module.called_once = hidden.filter(({ name }) => names.get(name) === 2);
  return module;
}
