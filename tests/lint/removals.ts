/**
 * A lint rule: what removes more than one file stands in `engine/files/removal.ts` alone, which looks
 * before it removes.
 */

const ROOT = new URL("../../", import.meta.url).pathname;
const ALLOWED = "engine/files/removal.ts";
/** Tests and benches remove their own scratch directories. */
const EXEMPT = /^(tests|bench)\//;
const DENO = new Set(["remove", "removeSync"]);
const NODE = new Set(["rm", "rmSync", "rmdir", "rmdirSync"]);
const NODE_FS = /^(node:)?fs(\/promises)?$/;
/**
 * `Deno.remove(path)` removes one file or one empty directory. With a second argument it may remove
 * a tree.
 */
const ARGUMENTS_MAX = 1;

const WHY =
  "Cannot remove a tree here: only engine/files/removal.ts does, which looks before it removes. Fix: call removeTree()";

type Named = { type: string; name?: string; value?: unknown };

const LOOPS = new Set([
  "ForStatement",
  "ForOfStatement",
  "ForInStatement",
  "WhileStatement",
  "DoWhileStatement",
]);

/** Whether it may run more than once where it stands: a sweep removes one file after another. */
function isInLoop(node: Deno.lint.Node): boolean {
  type Parented = { type: string; parent?: Parented };
  for (let at = node as Parented | undefined; at; at = at.parent) {
    if (LOOPS.has(at.type)) return true;
  }
  return false;
}

/** The name of a property or an import, however it is spelled. */
function nameOf(node: Named): string | undefined {
  return node.type === "Identifier"
    ? node.name
    : typeof node.value === "string"
    ? node.value
    : undefined;
}

/** `Deno`, or `globalThis.Deno`. */
function isNamedDeno(node: Named & { property?: Named }): boolean {
  return nameOf(node.property ?? node) === "Deno";
}

const plugin: Deno.lint.Plugin = {
  name: "removals",
  rules: {
    "one-place": {
      create(context) {
        const path = context.filename.startsWith(ROOT)
          ? context.filename.slice(ROOT.length)
          : context.filename;
        if (path === ALLOWED || EXEMPT.test(path)) return {};
        const report = (node: Deno.lint.Node) => context.report({ node, message: WHY });
        return {
          CallExpression(node) {
            const { callee } = node;
            if (callee.type !== "MemberExpression") return;
            const name = nameOf(callee.property as Named) ?? "";
            const isDeno = isNamedDeno(callee.object as Named & { property?: Named });
            const isMany = node.arguments.length > ARGUMENTS_MAX || isInLoop(node);
            if (isDeno && DENO.has(name) && isMany) report(node);
            if (!isDeno && NODE.has(name)) report(node);
          },
          // `python -m venv --clear` empties a directory, also one that a link leads to.
          Literal(node) {
            if (node.value === "--clear") report(node);
          },
          NewExpression(node) {
            const [first] = node.arguments;
            if (
              first?.type === "Literal" && /^(\/bin\/|\/usr\/bin\/)?rm$/.test(String(first.value))
            ) report(node);
          },
          // A name of its own for the function, as in `const { remove } = Deno`, would hide the
          // call.
          VariableDeclarator(node) {
            if (
              node.id.type !== "ObjectPattern" || node.init?.type !== "Identifier" ||
              node.init.name !== "Deno"
            ) {
              return;
            }
            for (const property of node.id.properties) {
              if (property.type === "Property" && DENO.has(nameOf(property.key as Named) ?? "")) {
                report(property);
              }
            }
          },
          ImportSpecifier(node) {
            const from = (node.parent as Deno.lint.ImportDeclaration).source.value;
            if (NODE_FS.test(String(from)) && NODE.has(nameOf(node.imported as Named) ?? "")) {
              report(node);
            }
          },
        };
      },
    },
  },
};
// Deno's lint loads a plugin by its default export.
export default plugin;
