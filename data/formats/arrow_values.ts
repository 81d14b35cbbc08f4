import type {
  Data,
  DataType,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
} from "apache-arrow";
import { DateUnit, TimeUnit, Type } from "apache-arrow/enum";
import { uint16ToFloat64 } from "apache-arrow/util/math";
import { parseExactly } from "../exact_json.ts";
import { utf8Text } from "../utf8_text.ts";
import { decimalOf } from "./decimal.ts";

/** The value of a column at a place, as hyparquet has it: null, or what JavaScript has for it. */
type Values = (place: number) => unknown;

/** What types say of their values: each has some of it. */
type TypeFacts =
  & Pick<FixedSizeBinary, "byteWidth">
  & Pick<Decimal, "bitWidth" | "scale">
  & Pick<FixedSizeList, "listSize">
  & Pick<Dictionary, "dictionary">
  & { unit: number; children: Field[] };
type Column = Omit<Data, "type" | "children"> & { type: TypeFacts; children: Data[] };

const DAY_MS = 86_400_000;
const WORD_BYTES = 4;
/** Of a view: its length, and the bytes if they fit, else a prefix, their buffer and their place. */
const VIEW_BYTES = 16;
const INLINE_BYTES_MAX = 12;

/** How the values of each type are read that are not null. Absent: they cannot be. */
const READERS: Partial<Record<Type, (column: Column) => Values>> = {
  [Type.Null]: () => () => null,
  [Type.Bool]: ({ values, length }) => bits(values, length),
  [Type.Int]: numbers,
  [Type.Float]: (column) => {
    const value = numbers(column);
    return column.values instanceof Uint16Array
      ? (place) => uint16ToFloat64(value(place) as number)
      : value;
  },
  [Type.Utf8]: (column) => texts(spanned(column)),
  [Type.LargeUtf8]: (column) => texts(spanned(column)),
  [Type.Utf8View]: (column) => texts(viewed(column)),
  [Type.Binary]: (column) => copies(spanned(column)),
  [Type.LargeBinary]: (column) => copies(spanned(column)),
  [Type.BinaryView]: (column) => copies(viewed(column)),
  [Type.FixedSizeBinary]: ({ values, length, type: { byteWidth } }) => {
    checkLength(values, length * byteWidth);
    return copies((place) => values.subarray(place * byteWidth, (place + 1) * byteWidth));
  },
  [Type.Decimal]: decimals,
  [Type.Date]: (column) => {
    const value = numbers(column);
    const unit = column.type.unit === DateUnit.DAY ? DAY_MS : 1;
    return (place) => new Date(Number(value(place)) * unit);
  },
  [Type.Timestamp]: (column) => {
    const value = numbers(column);
    const [times, per] = MILLISECONDS[column.type.unit as TimeUnit];
    return (place) => new Date(Number((value(place) as bigint) * times / per));
  },
  // Parquet has no seconds.
  [Type.Time]: (column) => {
    const value = numbers(column);
    return column.type.unit === TimeUnit.SECOND ? (place) => value(place) as number * 1000 : value;
  },
  [Type.Duration]: numbers,
  [Type.List]: lists,
  [Type.LargeList]: lists,
  [Type.FixedSizeList]: ({ length, children: [child], type: { listSize, children: [field] } }) => {
    const values = valuesOf(field!, child!);
    checkLength(child!, length * listSize);
    return (place) => ranged(values, place * listSize, (place + 1) * listSize);
  },
  [Type.Struct]: structs,
  [Type.Map]: (column) => {
    const entries = lists(column);
    return (place) =>
      Object.fromEntries(
        (entries(place) as Record<string, unknown>[]).map((one) => Object.values(one)),
      );
  },
  [Type.Dictionary]: dictionaries,
};

/** A unit of time in milliseconds: times the first, divided by the second. */
const MILLISECONDS: Record<TimeUnit, [bigint, bigint]> = {
  [TimeUnit.SECOND]: [1000n, 1n],
  [TimeUnit.MILLISECOND]: [1n, 1n],
  [TimeUnit.MICROSECOND]: [1n, 1000n],
  [TimeUnit.NANOSECOND]: [1n, 1_000_000n],
};

/**
 * The values of a column of a record batch. Not by the library's own accessors: they write U+FFFD
 * into a text that is not UTF-8, round decimals, and read past the end of damaged columns.
 * @throws {RangeError} If the column has fewer bytes than its values need.
 */
export function valuesOf({ type, metadata }: Field, data: Data): Values {
  const values = typedValues(type, data);
  return metadata.get("ARROW:extension:name") === "arrow.json" ? parsed(values) : values;
}

function typedValues({ typeId }: DataType, data: Data): Values {
  const { nullBitmap, length } = data;
  const value = READERS[typeId]!(data as unknown as Column);
  if (!nullBitmap || nullBitmap.length === 0) return value;
  const isPresent = bits(nullBitmap, length);
  return (place) => isPresent(place) ? value(place) : null;
}

/** The first field, or field inside one, whose type cannot be read. */
export function unreadableField(
  fields: readonly Field[],
  within: readonly string[] = [],
): { path: string; type: string } | null {
  for (const { name, type } of fields) {
    const path = [...within, name];
    const values: DataType = type.typeId === Type.Dictionary ? type.dictionary : type;
    if (READERS[values.typeId] === undefined) return { path: path.join("."), type: `${values}` };
    const inside = unreadableField(values.children ?? [], path);
    if (inside !== null) return inside;
  }
  return null;
}

function numbers({ values, length }: Column): Values {
  checkLength(values, length);
  return (place) => values[place];
}

function bits(bytes: Uint8Array, length: number): Values {
  checkLength(bytes, Math.ceil(length / 8));
  return (place) => (bytes[place >> 3]! & (1 << (place & 7))) !== 0;
}

type Bytes = (place: number) => Uint8Array;

function texts(bytes: Bytes): Values {
  return (place) => utf8Text(bytes(place));
}

/** A row outlives its batch. */
function copies(bytes: Bytes): Values {
  return (place) => bytes(place).slice();
}

function spanned(column: Column): Bytes {
  const span = spans(column, column.values.length);
  return (place) => column.values.subarray(...span(place));
}

function viewed({ values, length, variadicBuffers }: Column): Bytes {
  checkLength(values, length * VIEW_BYTES);
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  return (place) => {
    const at = place * VIEW_BYTES;
    const size = view.getInt32(at, true);
    const isInline = size <= INLINE_BYTES_MAX;
    const from = isInline ? at + 4 : view.getInt32(at + 12, true);
    const buffer = isInline ? values : variadicBuffers[view.getInt32(at + 8, true)] ?? [];
    checkSpan(from, from + size, buffer.length);
    return buffer.subarray(from, from + size);
  };
}

/** Little-endian words without a point. */
function decimals({ values, length, type: { scale, bitWidth } }: Column): Values {
  const words = bitWidth / 8 / WORD_BYTES;
  checkLength(values, length * words);
  return (place) => {
    const { buffer } = values.slice(place * words, (place + 1) * words);
    return decimalOf(new Uint8Array(buffer).reverse(), scale);
  };
}

function lists(column: Column): Values {
  const { children: [child], type: { children: [field] } } = column;
  const values = valuesOf(field!, child!);
  const span = spans(column, child!.length);
  return (place) => ranged(values, ...span(place));
}

function structs({ children, length, type }: Column): Values {
  const fields = type.children.map((field, i) => {
    checkLength(children[i]!, length);
    return [field.name, valuesOf(field, children[i]!)] as const;
  });
  return (place) => Object.fromEntries(fields.map(([name, value]) => [name, value(place)]));
}

function dictionaries(column: Column): Values {
  const entry = numbers(column);
  // A delta adds a chunk.
  const chunks = column.dictionary!.data.map((chunk) => ({
    length: chunk.length,
    value: typedValues(column.type.dictionary, chunk),
  }));
  return (place) => {
    let at = Number(entry(place));
    for (const { length, value } of chunks) {
      if (at < length) return value(at);
      at -= length;
    }
    throw new RangeError(`entry ${entry(place)} of a dictionary is missing`);
  };
}

function parsed(texts: Values): Values {
  return (place) => {
    const text = texts(place);
    return text === null ? null : parseExactly(text as string);
  };
}

function ranged(values: Values, from: number, to: number): unknown[] {
  return Array.from({ length: to - from }, (_, i) => values(from + i));
}

/** Where the bytes or entries of a value begin and end; there are `most`. */
function spans(
  { valueOffsets, length }: Column,
  most: number,
): (place: number) => [number, number] {
  if (length > 0) checkLength(valueOffsets, length + 1);
  return (place) => {
    const [from, to] = [Number(valueOffsets[place]), Number(valueOffsets[place + 1])];
    checkSpan(from, to, most);
    return [from, to];
  };
}

function checkSpan(from: number, to: number, most: number): void {
  if (from >= 0 && from <= to && to <= most) return;
  throw new RangeError(`a value is said to be from ${from} to ${to} of ${most}`);
}

function checkLength(held: { length: number }, needed: number): void {
  if (held.length < needed) {
    throw new RangeError(`a column has ${held.length} of ${needed} values`);
  }
}
