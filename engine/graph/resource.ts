/**
 * Typed tokens for what stages need from the outside world (worker groups, files) without
 * importing it.
 */

declare const /** @internal */ held: unique symbol;

/**
 * Names a resource of type T. Stages get it with `ctx.resource(token)`; `provide` passes it to the
 * engine.
 */
export type Resource<T> = { readonly name: string; readonly [held]?: T };

/** A resource and its implementation, for `new Engine({ resources: [...] })`. */
export type Provided = { readonly name: string; readonly value: unknown };

/** Declares a resource. Two tokens with one name mean the same resource. */
export function defineResource<T>(name: string): Resource<T> {
  return { name };
}

/** Binds an implementation to a token. */
export function provide<T>(token: Resource<T>, value: T): Provided {
  return { name: token.name, value };
}
