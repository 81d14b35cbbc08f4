/** Writes what a JSON Schema says more than once only once. */

type Json = Record<string, unknown>;

/** Where definitions are, in any draft. */
const PLACE = "$defs";
/** A reference is as long as this many characters of what it stands for. */
const SHORTEST = 120;

/**
 * A schema whose equal parts are definitions. Each is named after the setting, or the entry of a
 * table, that it first describes.
 */
export function withDefinitions(schema: Json): Json {
  const uses = new Map<string, number>();
  count(schema, uses);
  const definitions: Json = {};
  const names = new Map<string, string>();
  const shared = (value: unknown, setting: string): unknown => {
    if (Array.isArray(value)) return value.map((part) => shared(part, setting));
    if (typeof value !== "object" || value === null) return value;
    const text = JSON.stringify(value);
    if (!isSchema(value) || uses.get(text) === 1 || text.length < SHORTEST) {
      return within(value, setting);
    }
    let name = names.get(text);
    if (name === undefined) {
      names.set(text, name = freeName(nameOf(value) ?? setting, definitions));
      definitions[name] = {}; // The name is taken before those of its parts.
      definitions[name] = within(value, setting);
    }
    return { $ref: `#/${PLACE}/${name}` };
  };
  /** The parts of a schema: a field of `properties` is a setting, other keys are the schema's. */
  const within = (value: object, setting: string): Json =>
    Object.fromEntries(
      Object.entries(value).map(([key, part]) =>
        key === "properties" ? [key, fields(part)] : [key, shared(part, setting)]
      ),
    );
  const fields = (properties: Json): Json =>
    Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, shared(field, name)]),
    );
  const whole = within(schema, "");
  return { ...whole, [PLACE]: definitions };
}

function count(value: unknown, uses: Map<string, number>): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value) && isSchema(value)) {
    const text = JSON.stringify(value);
    const before = uses.get(text) ?? 0;
    uses.set(text, before + 1);
    if (before > 0) return; // Its parts are in one definition.
  }
  for (const part of Object.values(value)) count(part, uses);
}

/** Whether an object may be replaced by a reference: not the fields or the default of one. */
function isSchema(value: object): value is Json {
  const { type, anyOf, oneOf } = value as Json;
  return typeof type === "string" || Array.isArray(anyOf) || Array.isArray(oneOf);
}

/** Of an entry of a table: an algorithm or a reward. */
function nameOf({ properties }: Json): string | undefined {
  const name = (properties as Record<string, Json> | undefined)?.name?.const;
  return typeof name === "string" ? name : undefined;
}

function freeName(wanted: string, taken: Json): string {
  for (let n = 1;; n++) {
    const name = n === 1 ? wanted : `${wanted}_${n}`;
    if (!Object.hasOwn(taken, name)) return name;
  }
}

/** JSON for people: a value is on one line if it fits in `columns`, after `label`. */
export function readableJson(
  value: unknown,
  columns: number,
  { indent = "", label = "" }: { indent?: string; label?: string } = {},
): string {
  const flat = indent + label + JSON.stringify(value, null, 1).replace(/\n */g, " ");
  if (typeof value !== "object" || value === null || flat.length <= columns) return flat;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Object.entries(value).map(([key, part]) => {
    const named = Array.isArray(value) ? "" : `${JSON.stringify(key)}: `;
    return readableJson(part, columns, { indent: `${indent}  `, label: named });
  });
  return `${indent}${label}${open}\n${parts.join(",\n")}\n${indent}${close}`;
}
