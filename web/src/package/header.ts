// The header of a .pyort file. py_ort/compiler/package/format.py describes it, and a test compares the two.
import { ErrorCode, PlanVersion } from '../schema';
import { RuntimeError } from '../errors';
import { crc32 } from '../wire/checksum';
import { isOnnx } from './model_kinds';
import { isCount, isInteger, isSize, isText, listOf, mapOf, orNull, recordOf } from './header_fields';

/** The first bytes of a file. */
export const MAGIC = new Uint8Array([0x50, 0x59, 0x4f, 0x52, 0x54, 0x0d, 0x0a, 0x1a]);
/** Magic, size of the header, its CRC-32. */
export const PREFIX_BYTES = 16;
/** The supported version. */
const FORMAT_VERSION = 2;
const LARGEST_HEADER = 1 << 28;
/** Contents and further files start at multiples of this. */
const ALIGNMENT = 64;

/** Conversions of a weight's bytes in the file to those of its plan: `Form` in Python. */
export const Form = { asIs: 0, matrix: 1, transposed: 2, slices: 3, integers: 4 } as const;

export interface NodeArgEntry {
  readonly name: string;
  /** In ONNX's words: "tensor(float)", "seq(tensor(int64))", … */
  readonly type: string;
  /** A number, a name or null for each dimension; null if the rank is unknown. */
  readonly dims: readonly (number | string | null)[] | null;
  readonly keys: readonly (number | string | null)[] | null;
}

export interface MetadataEntry {
  readonly producer_name: string;
  readonly graph_name: string;
  readonly domain: string;
  readonly description: string;
  readonly graph_description: string;
  readonly version: number;
  readonly custom_metadata_map: { readonly [key: string]: string };
}

export interface PlanEntry {
  readonly providers: readonly string[];
  readonly shapes: { readonly [input: string]: readonly number[] };
  readonly offset: number;
  readonly size: number;
  /** Offset, size, form and its parameters (see the Python side), for each weight of the plan. */
  readonly weights: readonly (readonly [number, number, number, ...number[]])[];
  readonly placement: readonly [number, number];
}

export interface PartEntry {
  readonly name: string;
  readonly size: number;
}

export interface Header {
  readonly version: number;
  readonly plan_version: number;
  readonly producer: string;
  readonly name: string;
  readonly inputs: readonly NodeArgEntry[];
  readonly outputs: readonly NodeArgEntry[];
  readonly metadata: MetadataEntry;
  readonly plans: readonly PlanEntry[];
  readonly size: number;
  readonly parts: readonly PartEntry[];
  /** The start of each content of the data, and its CRC-32. */
  readonly checksums: readonly (readonly [number, number])[];
}

const isNodeArg = recordOf<NodeArgEntry>({
  name: isText,
  type: isText,
  dims: orNull(listOf(isSize)),
  keys: orNull(listOf(isSize)),
});
const isPair = listOf(isCount, 2, 2);
const isHeader = recordOf<Header>({
  version: isCount,
  plan_version: isCount,
  producer: isText,
  name: isText,
  inputs: listOf(isNodeArg),
  outputs: listOf(isNodeArg),
  metadata: recordOf<MetadataEntry>({
    producer_name: isText,
    graph_name: isText,
    domain: isText,
    description: isText,
    graph_description: isText,
    version: isInteger,
    custom_metadata_map: mapOf(isText),
  }),
  plans: listOf(
    recordOf<PlanEntry>({
      providers: listOf(isText),
      shapes: mapOf(listOf(isCount)),
      offset: isCount,
      size: isCount,
      weights: listOf(listOf(isCount, 3)),
      placement: isPair,
    }),
  ),
  size: isCount,
  parts: listOf(recordOf<PartEntry>({ name: isText, size: isCount })),
  checksums: listOf(isPair),
});

/** The size of the header that follows these bytes. Throws for other files, with advice. */
export function headerSize(prefix: Uint8Array, what: string): number {
  if (!MAGIC.every((byte, i) => prefix[i] === byte)) throw notAPackage(prefix, what);
  const size = new DataView(prefix.buffer, prefix.byteOffset).getUint32(8, true);
  if (size > LARGEST_HEADER) throw damaged(what, 'its header is too large');
  return size;
}

export function readHeader(prefix: Uint8Array, text: Uint8Array, what: string): Header {
  if (new DataView(prefix.buffer, prefix.byteOffset).getUint32(12, true) !== crc32(text)) {
    throw damaged(what, 'its header has changed');
  }
  const header = parsed(text, what);
  const { version, plan_version, producer } = header as Partial<Header>;
  if (version !== FORMAT_VERSION || plan_version !== PlanVersion.current) {
    throw new RuntimeError(
      ErrorCode.not_implemented,
      `${what} was written by ${producer}: it has format ${version} and plans of version ` +
        `${plan_version}, and this runtime reads ${FORMAT_VERSION} and ${PlanVersion.current}. ` +
        'Export the model again with the py_ort of this runtime (`py-ort export`), or use that of the file',
    );
  }
  if (!isHeader(header)) throw damaged(what, 'its header is not what it should be');
  const regions = header.plans.flatMap(
    (plan) => [[plan.offset, plan.size], plan.placement, ...plan.weights] as readonly (readonly number[])[],
  );
  if (
    regions.some(([offset, size]) => offset + size > header.size || offset % ALIGNMENT !== 0) ||
    header.parts.slice(0, -1).some(({ size }) => size % ALIGNMENT !== 0)
  )
    throw damaged(what, 'something in it is said to be where nothing can be');
  if (header.parts.some(({ name }) => name === '' || name.startsWith('.') || /[/\\]/.test(name)))
    throw damaged(what, 'its parts are not said to lie beside it');
  const summed = new Set(header.checksums.map(([offset]) => offset));
  if (regions.some(([offset, size]) => size > 0 && !summed.has(offset)))
    throw damaged(what, 'something in it has no checksum');
  return header;
}

function parsed(text: Uint8Array, what: string): object {
  let told: unknown;
  try {
    told = JSON.parse(new TextDecoder().decode(text));
  } catch {
    // Reported below, like other data that are not a header.
  }
  if (typeof told !== 'object' || told === null) throw damaged(what, 'its header is not what it should be');
  return told;
}

/** An error with advice. */
function notAPackage(prefix: Uint8Array, what: string): RuntimeError {
  const known = new TextDecoder('latin1').decode(prefix);
  const looks = isOnnx(prefix)
    ? 'is an ONNX file, and a page has no compiler'
    : known.startsWith('<') || known.startsWith('{')
      ? 'is a page or JSON (is its URL right?)'
      : known.slice(4, 8) === 'ORTM'
        ? 'is a file in the ORT format, and a page has no compiler'
        : 'is no .pyort file';
  return new RuntimeError(
    ErrorCode.invalid_graph,
    `${what} ${looks}. \`py-ort export MODEL.onnx\` writes MODEL.pyort, which runs here. Models inside of a ` +
      "library: `py-ort export SCRIPT.js -o DIR`, and env.exports = 'DIR/'. Others: `py-ort serve`, env.compiler, " +
      'env.fallback',
  );
}

export function damaged(what: string, how: string): RuntimeError {
  return new RuntimeError(
    ErrorCode.invalid_graph,
    `${what} is damaged: ${how}. Load it past the browser's cache, or copy or export it again`,
  );
}
