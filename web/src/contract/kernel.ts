// The interface of a kernel of the JavaScript execution provider. docs/webgpu_kernels.md explains it with an example.
//
// A Kernel belongs to an operator. Its resolve() is called once for new input shapes: it returns the output shapes and
// lists dispatches; nothing runs yet. A dispatch names a Shader and a spec. The WGSL is a pure function of the spec, so
// `shader name + JSON of spec` is the pipeline's cache key.
import type { DType } from '../schema';
import { Dialect } from '../schema/dialect';
import type { Attributes } from './attributes';

export { KernelError } from '../errors';

/**
 * The type of elements in a shader. float16 is "f16", or "f32" on devices without it; bfloat16: "f32"; int64, int8,
 * int16: "i32"; uint8, uint16, uint64, bool: "u32".
 */
export type StorageType = 'f32' | 'f16' | 'i32' | 'u32';

/** Elements stored more densely: float16 without f16, bfloat16, and 8 and 16-bit integers. */
export type Packing = 'f16' | 'bf16' | 'i8' | 'u8' | 'i16' | 'u16';

/** A tensor, for a kernel. `id` is virtual until commit. */
export interface Tensor {
  readonly id: number;
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** Number of elements. */
  readonly size: number;
  readonly storage: StorageType;
  /**
   * Kernels can ignore it: the runtime makes their shaders unpack the elements that they read, and pack those that they
   * write (packed.ts).
   */
  readonly packing?: Packing;
  /** Its start in its buffer, in elements (see Context.window). */
  readonly start?: number;
  /** A host input has no GPU buffer: read it with ctx.data(). */
  readonly location: 'gpu' | 'cpu' | 'none';
}

/** Names of tiles, by the product that uses them. */
export type TileTable = { readonly [product: string]: string };

/** Sizes of the matrices (left is m x k, right k x n), and of a subgroup. */
export interface SubgroupMatrix {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly subgroup: number;
}

/**
 * Properties by which kernels may choose their variant. A provider makes it in one place, from the adapter's
 * description.
 */
export interface DeviceTraits {
  /** A CPU pretending to be a GPU (SwiftShader, lavapipe): no barriers, no workgroup memory, wide register tiles. */
  readonly software: boolean;
  /** Compilation takes longer than a run or two (lavapipe): prefer few short texts, and loops to unrolled tiles. */
  readonly slowCompiler: boolean;
  readonly f16: boolean;
  readonly subgroups: boolean;
  /**
   * Multiplications of a convolution from which it is faster to convert its pixels to bytes and to multiply these by
   * dot4I8Packed. Infinity if the device lacks the function; MatMulNBits only looks for Infinity.
   */
  readonly bytesFrom: number;
  readonly maxWorkgroupsPerDimension: number;
  readonly maxStorageBuffersPerStage: number;
  readonly maxStorageBindingSize: number;
  readonly maxInvocations: number;
  readonly maxWorkgroupStorage: number;
  /** Threads are fragments: each may write only the element, or the vector, of its own index. */
  readonly ownElement?: boolean;
  /** Products of halves by matrices across a subgroup, with sums in float32, if the user enabled them. */
  readonly subgroupMatrix?: SubgroupMatrix;
  /**
   * The tiles that products use where possible, by productKey, or all by "*" (kernels/matmul/product/tiles.ts). Tiles
   * measured on this device take precedence over general expectations.
   */
  readonly tiles?: TileTable;
}

/**
 * A spec is plain JSON: numbers, strings, booleans, arrays and objects of them. Include only what the shader's text
 * depends on.
 */
export type Spec = { readonly [key: string]: unknown };

/**
 * A uniform field: a number is one scalar, an array several (name_0, name_1, …). u32 unless the name is in `f32` or
 * `i32`.
 */
export type Uniforms = { readonly [name: string]: number | readonly number[] };

/** A product's tile, for programs that measure tiles (DeviceTraits.tiles). */
export interface Tiling {
  /** The product's name in a table. */
  readonly product: string;
  readonly tile: string;
  /** All possible tiles here. */
  readonly choices: () => readonly string[];
}

export interface Shader<S extends Spec> {
  /** `<op>__<target>_<tile>`, e.g. conv__sw_4x8: the label in logs, profiles and benchmarks. */
  readonly name: string;
  /** The part of the text that a user wrote, verbatim: errors in it are reported with its own line numbers. */
  readonly own?: string;
  /**
   * The whole module except the bindings, which the runtime declares from the dispatch (see Dispatch). Entry point:
   * main.
   */
  wgsl(spec: S): string;
  /**
   * Its inputs may be in the same buffer as its outputs: they are declared read_write, which WebGPU requires for that.
   * For shaders whose inputs and outputs together are most of the memory that a model uses at one time.
   */
  readonly alias?: boolean;
  /**
   * Its text may do anything with its tensors, such as a user's: packed tensors are unpacked before it, and packed
   * after it.
   */
  readonly unpacked?: boolean;
}

/**
 * One dispatch. The runtime declares, in group 0:
 *   inputs:  var<storage, read> NAME: array<TYPE>;        outputs: var<storage, read_write> NAME: array<TYPE>;
 *   var<uniform> u: struct of 32-bit scalars, in the order given.
 * Names and element types (f32, vec4<f32>, …) are part of the pipeline's key.
 */
export interface Dispatch<S extends Spec = Spec> {
  readonly shader: Shader<S>;
  readonly spec: S;
  readonly inputs: { readonly [name: string]: Binding };
  readonly outputs: { readonly [name: string]: Binding };
  readonly uniforms?: Uniforms;
  readonly f32?: readonly string[];
  readonly i32?: readonly string[];
  /**
   * Inputs that may be in an output's place, by the output's name, if they are not needed afterwards. Each thread reads
   * only elements that no thread has written before: those that it alone writes, later. The shader's text uses the
   * input only as NAME[index]; the name is then replaced by the output's.
   */
  readonly inPlace?: { readonly [input: string]: string };
  /** Number of workgroups. If one dimension has too many, the runtime folds them (see folded_grid.ts). */
  readonly workgroups: readonly [number, number, number];
  /**
   * Iterations of a thread's loops, if they depend on a number in an attribute or operand, or on sizes of several
   * tensors: a dispatch that would never end is refused.
   */
  readonly iterations?: number;
  /** For a product. */
  readonly tiling?: Tiling;
}
/**
 * A tensor, with its own element type or with `vec` elements at a time (2 or 4; its size must be a multiple of that).
 */
export type Binding = Tensor | { readonly tensor: Tensor; readonly vec: 1 | 2 | 4 };

/** One call of a kernel on inputs of known shapes. */
export interface Context {
  /** Undefined if an optional input is omitted. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly outputCount: number;
  readonly device: DeviceTraits;
  /** True if a node reads output i. */
  wants(i: number): boolean;
  /** Input i; throws a KernelError if it is missing. */
  input(i: number): Tensor;
  /**
   * Elements of host input i as numbers; undefined if it is omitted. int64 is clamped to 2^53, as for Slice's "to the
   * end".
   */
  data(i: number): number[] | undefined;
  /**
   * True if `test` holds for the elements of host input i. The resolved commands stay valid for other elements with the
   * same answer.
   */
  holds(i: number, test: (elements: readonly number[]) => boolean): boolean;
  /** Declares output i. dtype: input 0's by default. */
  output(i: number, dims: readonly number[], dtype?: DType): Tensor;
  /** Output i is `input` (one of ctx.inputs) under another shape, without a copy. */
  view(i: number, input: Tensor, dims: readonly number[]): void;
  /**
   * True if output i is bound to the same buffer as input j, and nothing else reads it. A kernel that only appends to
   * it (to a cache of keys, for example) may then make the output a view of the input and write only the new part.
   */
  boundInPlace(i: number, j: number): boolean;
  /**
   * For outputs bound to inputs with room for further rows (AppendedByFeeds): int32 [batch], the number of rows before
   * the call's.
   */
  rowsBefore(): Tensor | undefined;
  /**
   * Scratch memory of this call. `ofWeights`: derived from weights only. If these are constant, it is computed in the
   * first run and cached, as far as there is room (device/arena.ts).
   */
  temp(dims: readonly number[], dtype: DType, ofWeights?: boolean): Tensor;
  /** The same bytes under another shape, for a dispatch. */
  reshape(tensor: Tensor, dims: readonly number[]): Tensor;
  /**
   * Part of a tensor, for a dispatch that may not bind all of it: the elements from `start` on, in the shape `dims`.
   * `start` must be a multiple of windowStep (wgsl/large.ts).
   */
  window(tensor: Tensor, start: number, dims: readonly number[]): Tensor;
  dispatch<S extends Spec>(dispatch: Dispatch<S>): void;
  /** Resolve another kernel inside this one, on these tensors (an operator made of others). */
  call<A>(kernel: Kernel<A>, attributes: A, inputs: readonly (Tensor | undefined)[], outputs: readonly Tensor[]): void;
}

export type DTypeName =
  | 'float32'
  | 'float16'
  | 'bfloat16'
  | 'int64'
  | 'int32'
  | 'uint32'
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'uint64'
  | 'bool';

/**
 * A property that a node must have, besides its inputs' dtypes, for this kernel to run it. Python reads it in the
 * manifest and places other nodes on the next provider, so that no node is refused at run time.
 */
export interface Requirement {
  /**
   * An attribute that must have one of these values (for a list: each element); a node without the attribute passes.
   */
  readonly attribute?: string;
  readonly values?: readonly (number | string)[];
  /** An input or an output that must be absent. */
  readonly noInput?: number;
  readonly noOutput?: number;
  /** An input that must be a constant, if it is present. */
  readonly constant?: number;
  /** The smallest and the largest rank of an input. */
  readonly rank?: { readonly input: number; readonly min?: number; readonly max?: number };
  /** Applies only to nodes whose input 0 has one of these dtypes. */
  readonly of?: readonly DTypeName[];
  /** The text for users: "BitCast from float32 to …". */
  readonly otherwise: string;
}

/**
 * Abilities of a kernel beyond its operator, for which passes ask.
 * - columns: it reads and writes columns of wider tensors, as attributes say (kernels/shared/columns.ts).
 * - epilogue, of products: it applies the attribute `epilogue`, in the forms that wgsl/epilogue.ts recognizes.
 *   residual: this may read input 3. steps: it may have any length; Softmax and normalizations have this, too. words:
 *   the bytes of its last rounding are output 4, too (kernels/shared/byte_words.ts).
 * - perm: ElementwiseChain is transposed; of products, their operands and result are.
 * - bias, of MatMul: input 2 is added to the product.
 * - bytes, of MatMulNBits and convolutions: it accepts rows, or pixels and weights, of 8 bits.
 * - Of MatMulNBits, norm: input 6 is the scale of a normalization of its rows; gate: half of its columns are a gate of
 *   the others; residual: input 7.
 * - parts: a product stores the sums of parts of k separately, and its reader adds them
 *   (passes/placed/product_parts.py).
 * - signed, of operators on quantized tensors: they use integers only if all bytes are int8 and weights are constants
 *   without zero points (passes/fuse/signed_bytes.py).
 */
export type Feature =
  | 'columns'
  | 'bias'
  | 'epilogue'
  | 'residual'
  | 'steps'
  | 'bytes'
  | 'norm'
  | 'gate'
  | 'parts'
  | 'perm'
  | 'signed'
  | 'words';

/**
 * Outputs of a decoder's attention that are inputs with new rows appended: [batch, heads, rows, size], with a new row
 * for each position in axis 1 of input 0. If both are one buffer (Context.boundInPlace), it may have room for further
 * rows.
 */
export interface Appended {
  readonly caches: readonly (readonly [input: number, output: number])[];
  readonly by: AppendedByLengths | AppendedByFeeds;
}

/** Inputs contain the number of rows. */
export interface AppendedByLengths {
  /** An int32 input: for each batch the number of valid rows, minus one. */
  readonly lengths: number;
  /** A host input, read by Context.holds: the number of rows in all. */
  readonly total: number;
}

/**
 * All rows of the caches are valid, and one new one (Context.rowsBefore). Of the model's inputs, `growing` have as many
 * elements along their last axis as there are rows then.
 */
export interface AppendedByFeeds {
  readonly growing: readonly number[];
}

export interface Kernel<A = unknown> {
  readonly op: string;
  /** '' (ai.onnx) by default. */
  readonly domain?: string;
  /**
   * Accepted dtypes, per input; the last entry applies to all further inputs. Host inputs accept any: []. Python places
   * nodes by this.
   */
  readonly types: readonly (readonly DTypeName[])[];
  readonly requires?: readonly Requirement[];
  readonly features?: readonly Feature[];
  readonly appended?: (attributes: A) => Appended | undefined;
  /** Parse the attributes once, when the kernel is created. */
  attributes?(attributes: Attributes): A;
  resolve(ctx: Context, attributes: A): void;
}

export const NHWC_DOMAIN = Dialect.NHWC_DOMAIN;
export const MICROSOFT_DOMAIN = 'com.microsoft';
