// The interface of a kernel of the JavaScript execution provider. docs/webgpu_kernels.md tells it with an example.
//
// A Kernel belongs to an operator. Its resolve() is called once for new input shapes: it gives the output shapes and
// lists dispatches; nothing runs yet. A dispatch names a Shader and a spec; the WGSL is a pure function of the spec, so
// `shader name + JSON of spec` is the pipeline's cache key.
import type { DType } from '../schema';
import { Dialect } from '../schema/dialect';
import type { Attributes } from './attributes';

export { KernelError } from '../errors';

/**
 * What elements are to a shader that reads and writes them. float16 is "f16", or "f32" on devices without it; bfloat16:
 * "f32"; int64, int8, int16: "i32"; uint8, uint16, uint64, bool: "u32".
 */
export type StorageType = 'f32' | 'f16' | 'i32' | 'u32';

/** Elements that lie closer together than that: float16 without f16, bfloat16, and 8 and 16-bit integers. */
export type Packing = 'f16' | 'bf16' | 'i8' | 'u8' | 'i16' | 'u16';

/** A tensor as a kernel sees it. `id` is virtual until commit. */
export interface Tensor {
  readonly id: number;
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** Number of elements. */
  readonly size: number;
  readonly storage: StorageType;
  /**
   * Kernels need not care: the runtime makes their shaders unpack what they read and pack what they write
   * (packed.ts).
   */
  readonly packing?: Packing;
  /** Where it begins in its buffer, in elements (see Context.window). */
  readonly start?: number;
  /** A host input has no GPU buffer: read it with ctx.data(). */
  readonly location: 'gpu' | 'cpu' | 'none';
}

/** Names of tiles, by the product that takes it. */
export type TileTable = { readonly [product: string]: string };

/** Sizes of the matrices: left is m x k, right k x n; and of a subgroup. */
export interface SubgroupMatrix {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly subgroup: number;
}

/** What kernels may choose their variant by. A provider makes it in one place, of the adapter's own words. */
export interface DeviceTraits {
  /** A CPU pretending to be a GPU (SwiftShader, lavapipe): no barriers, no workgroup memory, wide register tiles. */
  readonly software: boolean;
  /**
   * Compilation takes longer than a run or two (lavapipe): short texts and few of them, loops instead of tiles written
   * out.
   */
  readonly slowCompiler: boolean;
  readonly f16: boolean;
  readonly subgroups: boolean;
  /**
   * Multiplications of a convolution from which it pays to make bytes of its pixels and to multiply these by
   * dot4I8Packed; Infinity where there is no such thing, which MatMulNBits looks at alone.
   */
  readonly bytesFrom: number;
  readonly maxWorkgroupsPerDimension: number;
  readonly maxStorageBuffersPerStage: number;
  readonly maxStorageBindingSize: number;
  readonly maxInvocations: number;
  readonly maxWorkgroupStorage: number;
  /** Threads are fragments: each may write only the element, or the vector, of its own index. */
  readonly ownElement?: boolean;
  /** Products of halves by matrices that lie across a subgroup, with sums in float32, where they were asked for. */
  readonly subgroupMatrix?: SubgroupMatrix;
  /**
   * The tiles that products take where they can, by productKey, or all by "*" (kernels/matmul/product/tiles.ts): what
   * was measured here goes before what is expected of any GPU.
   */
  readonly tiles?: TileTable;
}

/**
 * A spec is plain JSON: numbers, strings, booleans, arrays and objects of them. Keep to it what the text of the shader
 * needs.
 */
export type Spec = { readonly [key: string]: unknown };

/**
 * A uniform field: a number is one scalar, an array several (name_0, name_1, …). u32 unless the name is in `f32` or
 * `i32`.
 */
export type Uniforms = { readonly [name: string]: number | readonly number[] };

/** Which tile a product takes, for whoever measures tiles (DeviceTraits.tiles). */
export interface Tiling {
  /** By which a table knows the product. */
  readonly product: string;
  readonly tile: string;
  /** All that it could take here. */
  readonly choices: () => readonly string[];
}

export interface Shader<S extends Spec> {
  /** `<op>__<target>_<tile>`, e.g. conv__sw_4x8: the label in logs, profiles and benchmarks. */
  readonly name: string;
  /** The part of the text that a user wrote, word for word: errors in it are told with its own line numbers. */
  readonly own?: string;
  /**
   * The whole module but the bindings, which the runtime declares from the dispatch (see Dispatch). Entry point: main.
   */
  wgsl(spec: S): string;
  /**
   * Its inputs may lie in the same buffer as its outputs: they are declared read_write, which WebGPU wants for that.
   * For shaders whose inputs and outputs together are most of what a model holds at one time.
   */
  readonly alias?: boolean;
  /**
   * Its text may do anything with its tensors, as a user's does: those that are packed are unpacked before it, and
   * packed behind it.
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
   * Inputs that may lie where an output does, by the output's name, where they are not needed any more: what a thread
   * reads of such an input nobody has written before, because it is what only this thread writes, and later. The
   * shader's text names the input only as NAME[index]; it is given the output's name then.
   */
  readonly inPlace?: { readonly [input: string]: string };
  /**
   * Number of workgroups. Where there are too many in one dimension, the runtime folds them (see folded_grid.ts).
   */
  readonly workgroups: readonly [number, number, number];
  /**
   * Iterations of the loops of a thread, where a number in an attribute or operand, or sizes of several tensors, decide
   * them: a dispatch that would never end is refused.
   */
  readonly iterations?: number;
  /** Of a product. */
  readonly tiling?: Tiling;
}
/**
 * A tensor, with its own element type or with `vec` elements at a time (2 or 4; its size must be a multiple of that).
 */
export type Binding = Tensor | { readonly tensor: Tensor; readonly vec: 1 | 2 | 4 };

/** One call of a kernel on inputs of known shapes. */
export interface Context {
  /** Undefined where an optional input is omitted. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly outputCount: number;
  readonly device: DeviceTraits;
  /** Whether anything reads output i. */
  wants(i: number): boolean;
  /** The input that must be there, else a KernelError. */
  input(i: number): Tensor;
  /**
   * Elements of host input i as numbers (int64 too: beyond 2^53 they are clamped to it, as Slice's "to the end");
   * undefined when omitted.
   */
  data(i: number): number[] | undefined;
  /**
   * Whether `test` holds for the elements of host input i. What was resolved stays valid for other elements for which
   * it is the same.
   */
  holds(i: number, test: (elements: readonly number[]) => boolean): boolean;
  /** Declares output i. dtype: that of input 0 unless given. */
  output(i: number, dims: readonly number[], dtype?: DType): Tensor;
  /** Output i is `input` (one of ctx.inputs) under another shape, without a copy. */
  view(i: number, input: Tensor, dims: readonly number[]): void;
  /**
   * Whether output i was bound to the very buffer that was fed as input j, which nothing else reads: a kernel that only
   * adds to it (to a cache of keys, say) may make the output a view of the input and write what is new there.
   */
  boundInPlace(i: number, j: number): boolean;
  /**
   * Where outputs are bound to inputs that have room for more rows than there are (AppendedByFeeds): int32 [batch], how
   * many there are before the call's.
   */
  rowsBefore(): Tensor | undefined;
  /**
   * Scratch memory of this call. `ofWeights`: what the kernel makes of its weights, worth to be kept as they are: where
   * these are constant it is made in the first run only, as far as there is room (device/arena.ts).
   */
  temp(dims: readonly number[], dtype: DType, ofWeights?: boolean): Tensor;
  /** The same bytes under another shape, for a dispatch. */
  reshape(tensor: Tensor, dims: readonly number[]): Tensor;
  /**
   * Part of a tensor, for a dispatch that may not bind it whole: the elements from `start` on, in the shape `dims`.
   * `start` must be a multiple of what windowStep (wgsl/large.ts) says.
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
 * What a node must be like, besides its inputs' dtypes, for this kernel to run it: Python reads it in the manifest and
 * places other nodes on the next provider, so that nothing is refused at run time.
 */
export interface Requirement {
  /** An attribute that must have one of these values (each of them, where it is a list); a node without it passes. */
  readonly attribute?: string;
  readonly values?: readonly (number | string)[];
  /** An input or an output that must not be there. */
  readonly noInput?: number;
  readonly noOutput?: number;
  /** An input that must be a constant, if it is there. */
  readonly constant?: number;
  /** How many axes an input must have at least, and at most. */
  readonly rank?: { readonly input: number; readonly min?: number; readonly max?: number };
  /** Asked only of nodes whose input 0 has one of these dtypes. */
  readonly of?: readonly DTypeName[];
  /** Told to users: "BitCast from float32 to …". */
  readonly otherwise: string;
}

/**
 * What a kernel can do besides its operator, which passes ask for. columns: it reads and writes columns of wider
 * tensors where attributes say so (kernels/shared/columns.ts). Of products, epilogue: it does what the attribute
 * `epilogue` says, in the form that wgsl/epilogue.ts recognizes; residual: that may read input 3; steps: of any length
 * besides, which Softmax and normalizations have, too; words: what that rounds at last is output 4 in bytes, too
 * (kernels/shared/byte_words.ts). Of ElementwiseChain, perm: it is transposed, of products, what is around them. Of
 * MatMul, bias: input 2 is added to the product. Of MatMulNBits and convolutions, bytes: it is told of rows, or pixels
 * and weights, of 8 bits. Of MatMulNBits, norm: input 6 is the scale of a normalization of its rows; gate: half of its
 * columns are a gate of the others; residual: input 7. parts: a product leaves the sums of parts of k as they are, and
 * what reads it adds them up (passes/placed/product_parts.py). Of operators on quantized tensors, signed: they work on
 * integers only where all bytes are int8 and weights are constants without zero points (passes/fuse/signed_bytes.py).
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
 * Outputs of a decoder's attention that are inputs with new rows behind: [batch, heads, rows, size], which get one for
 * each of axis 1 of input 0. Where both are one buffer (Context.boundInPlace), it may have room for more of them.
 */
export interface Appended {
  readonly caches: readonly (readonly [input: number, output: number])[];
  readonly by: AppendedByLengths | AppendedByFeeds;
}

/** Inputs say how many rows there are. */
export interface AppendedByLengths {
  /** An int32 input: of each batch, how many rows count, less one. */
  readonly lengths: number;
  /** A host input, asked for by Context.holds: how many rows there are in all. */
  readonly total: number;
}

/**
 * All rows of the caches count, and one new one (Context.rowsBefore). Of the model's inputs, `growing` have as many
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
   * Accepted dtypes, per input; the last entry stands for all further inputs. Host inputs take any: []. Python places
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
