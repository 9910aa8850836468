// The inner loops that determine speed, behind one table. Variants for other instruction sets can be installed, and a
// pool of threads can run them, without a change to any operator. This file is plain data and pointers: side modules
// include it without a C++ library.
//
// A micro-kernel works on units [begin, end) of its arguments. Units are independent: they may be split over workers in
// any way. Each worker passes scratch memory of its own (`scratch_bytes` of the arguments, 16-byte aligned).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "py_ort/gen/activations_generated.h"

namespace py_ort {

// A function of py_ort/schema/scalar_functions.py with its parameters.
struct Activation {
#define PY_ORT_KIND(kind, ...) kind,
  enum Kind : int32_t { none, PY_ORT_VECTOR_FUNCTIONS(PY_ORT_KIND) };
#undef PY_ORT_KIND
  Kind kind = none;
  float a = 0, b = 0;
};

// Steps applied to a sum before it is stored: a residual Z, if there is one, is added before a function or at the very
// end, and a number is added to the function's result.
struct Epilogue {
  enum Form : int32_t { identity, clamp, function };  // the first two cost next to nothing
  Form form = identity;                               // for function and offset
  Activation activation;
  float offset = -0.0f;  // leaves even -0 unchanged
  bool residual_last = false;
};

// A window that slides over a channels-last image [batch, in[0], in[1], in[2], channels]; images with fewer axes have
// leading ones.
struct Window {
  int32_t batch, in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];  // pad: at the beginnings
  int32_t pixel_stride;                                                     // elements between neighboring pixels
  int32_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // The most taps of a window inside the image: a pool's window may be of any size.
  int32_t taps_inside() const {
    int32_t count = 1;
    for (int axis = 0; axis < 3; ++axis) count *= kernel[axis] < in[axis] ? kernel[axis] : in[axis];
    return count;
  }
  int32_t pixels_out() const { return batch * out[0] * out[1] * out[2]; }
};

// The number of tiles of rows that use a panel of weights before the next panel is read: as many as fit into a
// second-level cache, in blocks of about the same size. Weights are in outer caches or in memory, and each block reads
// all of them.
constexpr int32_t kLeastTilesInBlock = 8, kMostTilesInBlock = 32;
inline int32_t tiles_in_block(int32_t tiles, int64_t bytes_of_tile) {
  const int64_t room = (1 << 20) / (bytes_of_tile + 1);
  const auto most = static_cast<int32_t>(room < kLeastTilesInBlock  ? kLeastTilesInBlock
                                         : room > kMostTilesInBlock ? kMostTilesInBlock
                                                                    : room);
  const int32_t blocks = (tiles + most - 1) / most;
  return blocks > 0 ? (tiles + blocks - 1) / blocks : 0;
}

// C[rows, n] = epilogue(A B + bias, Z). B is stored in panels of 8 columns, [ceil(n/8), taps * k, 8], zero-filled. Row
// r of A has `taps` pieces of k floats. Without a window taps is 1 and the piece begins at a + r * a_stride. With a
// window, rows are the output pixels, and piece t is the pixel below tap t of the window, or `zeros` (k of them)
// outside of the image.
struct F32Gemm {
  int32_t rows = 0, n = 0, k = 0, taps = 1;
  const float* a = nullptr;
  int32_t a_stride = 0;
  const Window* window = nullptr;
  const float* zeros = nullptr;
  const float* b = nullptr;
  const float* bias = nullptr;  // [n], or null
  const float* z = nullptr;     // [rows, n], or null
  int32_t z_stride = 0;
  float* c = nullptr;
  int32_t c_stride = 0;
  Epilogue epilogue;
  int32_t column_pieces = 1;  // units = ceil(rows / 6) * column_pieces

  static constexpr int32_t kRows = 6, kColumns = 8;
  static constexpr size_t kScratch = 4096;  // enough without a window
  static_assert(kScratch >= 2 * kMostTilesInBlock * kRows * sizeof(float*) + 16);
  bool packs_rows() const { return taps > 1 && k < 16; }  // short pieces are gathered first
  int32_t tiles() const { return (rows + kRows - 1) / kRows; }
  // Tiles in a block. A window that is not packed keeps pointers to pixels, and most pixels are below several taps.
  int32_t block() const {
    const int64_t floats = packs_rows() ? static_cast<int64_t>(k) * taps : k > taps ? k : taps;
    return tiles_in_block(tiles(), sizeof(float) * kRows * floats);
  }
  int32_t units() const { return tiles() * column_pieces; }
  // For the current rows, k and taps.
  size_t scratch_bytes() const {
    const size_t rows_in_block = static_cast<size_t>(kRows) * block();
    return rows_in_block * taps * (packs_rows() ? k * sizeof(float) : sizeof(float*)) + rows_in_block * sizeof(float*) +
           16;
  }
};

// Packs matrices [k, n] of strided memory, times a number, into panels of 8 columns. Each outer step has `inner` of
// them. Units: panels.
struct F32Pack {
  int32_t k = 0, n = 0;
  const float* b = nullptr;
  ptrdiff_t row_step = 0, column_step = 1, inner_step = 0, outer_step = 0;
  int32_t first = 0, matrices = 1, inner = 1;
  float scale = 1;
  float* panels = nullptr;  // [matrices, ceil(n/8), k, 8]

  int32_t panels_each() const { return (n + F32Gemm::kColumns - 1) / F32Gemm::kColumns; }
  int32_t units() const { return matrices * panels_each(); }
  size_t scratch_bytes() const { return 0; }
};

// A convolution of 3x3 taps, stride 1, over the last two axes of the image, by Winograd's F(2x2, 3x3): 16 products of
// transformed pixels and weights make 2x2 output pixels, 2.25 times fewer multiplications. Units: blocks of tiles of
// 2x2 output pixels, for each piece of the output channels. Each piece transforms the pixels again.
struct F32Winograd {
  const Window* window = nullptr;
  int32_t k = 0, n = 0;  // channels in and out
  const float* x = nullptr;
  const float* zeros = nullptr;    // k of them
  const float* weights = nullptr;  // transformed: [16, ceil(n/8), k, 8]
  const float* bias = nullptr;
  const float* z = nullptr;  // [pixels, n], or null
  float* y = nullptr;        // [pixels, n]
  int32_t z_stride = 0, y_stride = 0;
  Epilogue epilogue;
  int32_t column_pieces = 1;

  // The most tiles in a block, which are whole tiles of F32Gemm: images of 13x13 and 14x14 have 49.
  static constexpr int32_t kTiles = 54, kLeastColumns = 32;
  int32_t rows() const { return (window->out[1] + 1) / 2; }
  int32_t columns() const { return (window->out[2] + 1) / 2; }
  int32_t tiles() const { return window->batch * rows() * columns(); }
  int32_t blocks() const { return (tiles() + kTiles - 1) / kTiles; }
  int32_t tiles_in_block() const {
    const int32_t each = (tiles() + blocks() - 1) / blocks();
    return (each + F32Gemm::kRows - 1) / F32Gemm::kRows * F32Gemm::kRows;
  }
  int32_t units() const { return blocks() * column_pieces; }
  size_t scratch_bytes() const {
    return (static_cast<size_t>(k) + n + 8) * 16 * tiles_in_block() * sizeof(float) + F32Gemm::kScratch;
  }
};

// y[pixel, channel] = epilogue(sum over taps of x[pixel below tap, channel] * w[tap, channel] + bias[channel], Z).
// Units: groups of 4 output pixels.
struct F32Depthwise {
  const Window* window = nullptr;
  int32_t channels = 0;
  const float* x = nullptr;
  const float* zeros = nullptr;  // `channels` of them
  const float* w = nullptr;      // [taps, channels]
  const float* bias = nullptr;
  const float* z = nullptr;  // [pixels, channels], or null
  float* y = nullptr;        // [pixels, channels]
  int32_t z_stride = 0, y_stride = 0;
  Epilogue epilogue;

  static constexpr int32_t kPixels = 4;
  int32_t units() const { return (window->pixels_out() + kPixels - 1) / kPixels; }
  size_t scratch_bytes() const { return static_cast<size_t>(kPixels) * window->taps() * sizeof(float*); }
};

// Pooling of a channels-last image. Pixels outside of the image do not count. Units: output pixels.
struct F32Pool {
  enum Kind : int32_t { maximum, average /* sum times scale */ };
  const Window* window = nullptr;
  int32_t channels = 0;
  Kind kind = maximum;
  const float* x = nullptr;
  float* y = nullptr;
  bool count_padding = false;  // average: divide by the number of taps inside of the padded image, not of the image
  int32_t pad_end[3] = {0, 0, 0};

  int32_t units() const { return window->pixels_out(); }
  size_t scratch_bytes() const { return static_cast<size_t>(window->taps_inside()) * sizeof(float*); }
};

// y[i] = function(x[i]). Units: blocks of kBlock floats.
struct F32Map {
  Activation function;
  int32_t count = 0;
  const float* x = nullptr;
  float* y = nullptr;  // may be x

  static constexpr int32_t kBlock = 1024;
  int32_t units() const { return (count + kBlock - 1) / kBlock; }
  size_t scratch_bytes() const { return 0; }
};

// Softmax or its logarithm along the middle axis of [outer, n, inner]. Units: outer.
struct F32Softmax {
  int32_t outer = 0, n = 0, inner = 1;
  bool log = false;
  const float* x = nullptr;
  float* y = nullptr;  // may be x

  int32_t units() const { return outer; }
  size_t scratch_bytes() const { return inner == 1 ? 0 : (static_cast<size_t>(inner) * 2 + 8) * sizeof(float); }
};

// Matrices [rows, columns] of each batch and head inside a tensor; columns are contiguous.
struct Heads {
  const float* data = nullptr;
  int64_t batch_step = 0, head_step = 0, row_step = 0;
  const float* at(int64_t batch, int64_t head) const { return data + batch * batch_step + head * head_step; }
  // [batch, heads, rows, columns], and [batch, rows, heads * columns].
  static Heads by_head(const float* data, int64_t heads, int64_t rows, int64_t columns) {
    return {data, heads * rows * columns, rows * columns, columns};
  }
  static Heads by_row(const float* data, int64_t heads, int64_t rows, int64_t columns) {
    return {data, rows * heads * columns, columns, heads * columns};
  }
  // `columns` per head, from `offset` on, of [batch, rows, width].
  static Heads within(const float* data, int64_t rows, int64_t width, int64_t offset, int64_t columns) {
    return {data + offset, rows * width, columns, width};
  }
};

// A number added to the score of each (batch, head, row, column); steps of 0 repeat it.
struct ScoreBias {
  const float* data = nullptr;
  int64_t batch_step = 0, head_step = 0, row_step = 0;
  int64_t columns = 0;      // columns from here on are masked
  bool one_column = false;  // one number for all columns of a row
};

// softmax(scale Q K^T + bias) V for each head. A row that sees no column yields zeros. Units: blocks of rows of a head.
struct F32Attention {
  int64_t batch = 0, heads = 0, kv_heads = 0, rows = 0, columns = 0, qk_size = 0, v_size = 0;
  Heads q, k, v, y;  // y is written
  // Packed keys (times scale) and values of the heads from `first_head` on, counted through all batches, in panels.
  // Null if rows are so few that packing costs more than it saves.
  const float* packed_k = nullptr;
  const float* packed_v = nullptr;
  int64_t first_head = 0, head_count = 0;
  float scale = 1, softcap = 0;
  const ScoreBias* bias = nullptr;
  int32_t bias_count = 0;
  const ScoreBias* dropped = nullptr;           // where this is not 0, scores are 0 before biases are added; null: none
  bool causal = false;                          // row i sees columns up to i + offset
  bool nan_rows = false;                        // NaN, not zeros, for a row that sees no column
  int64_t left_window = -1, right_window = -1;  // and only columns within these distances of i + offset; -1: any
  const int64_t* offset = nullptr;              // per batch, or null: 0
  const int64_t* length = nullptr;              // per batch: columns from there on are masked; null: none
  const float* sink = nullptr;                  // per head, a score in the softmax that has no value; null: none
  // Requested scores, [batch, heads, rows, columns]: raw, after softcap, after bias, after softmax.
  enum Stage : int32_t { product, capped, biased, softmax };
  float* scores = nullptr;
  Stage stage = product;

  // Scores in a block, so that they stay in the cache. Blocks have equal sizes, in whole tiles of a product.
  static constexpr int64_t kBlockScores = 16384, kLeastRows = 24;
  int64_t width() const { return columns + (sink ? 1 : 0); }  // of a row of scores: the sink is last
  int64_t block_rows() const {
    const int64_t most = kBlockScores / (columns + 1) > kLeastRows ? kBlockScores / (columns + 1) : kLeastRows;
    const int64_t count = (rows + most - 1) / most;
    return ((rows + count - 1) / count + F32Gemm::kRows - 1) / F32Gemm::kRows * F32Gemm::kRows;
  }
  int64_t blocks() const { return (rows + block_rows() - 1) / block_rows(); }
  int32_t units() const { return static_cast<int32_t>(head_count * blocks()); }
  size_t bias_bytes() const { return static_cast<size_t>(columns + 3) / 4 * 16; }
  size_t scratch_bytes() const {
    return F32Gemm::kScratch + bias_bytes() + static_cast<size_t>(block_rows() * width()) * sizeof(float);
  }
};

// Rows of n floats, minus their mean (if `centered`), times the inverse of their deviation (or root mean square), times
// scale, plus bias. With `skip`, the row is first made x + skip + skip_bias. Units: rows.
struct F32Normalize {
  int32_t rows = 0, n = 0;
  const float* x = nullptr;
  const float* skip = nullptr;  // [skip_rows, n], repeated
  int32_t skip_rows = 1;
  const float* skip_bias = nullptr;  // [n], or null
  const float* scale = nullptr;  // [scale_rows, n], repeated, or null; scale_per_row: [scale_rows], one number a row
  const float* bias = nullptr;   // likewise
  int32_t scale_rows = 1;
  bool scale_per_row = false;
  bool centered = true;
  float epsilon = 0;
  float* y = nullptr;                  // may be x
  float* sum = nullptr;                // [rows, n]: the rows with skip; may be null
  float* mean = nullptr;               // [rows], or null
  float* inverse_deviation = nullptr;  // [rows], or null

  int32_t units() const { return rows; }
  size_t scratch_bytes() const { return 0; }
};

// C[rows, n] = A W + bias, with weights of 2, 4 or 8 bits in blocks along k: (weight - zero point) * scale. They are
// stored as in com.microsoft's MatMulNBits, column by column. Rows of A are prepared first (block_rows): as floats, or
// rounded to 8 bits by block. The units that follow are columns, for few rows, or tiles.
struct BlockProduct {
  int32_t rows = 0, n = 0, k = 0, bits = 4, block = 32;  // block: 16, or a multiple of 32
  bool integers = false;                                 // A is rounded
  bool tiles = false;                                    // also for few rows
  const float* a = nullptr;                              // [rows, k]
  void* prepared = nullptr;                              // prepared_bytes(), 16-byte aligned
  const uint8_t* b = nullptr;                            // [n, blocks, block * bits / 8]; the lowest bits come first
  const float* scales = nullptr;                         // [n, blocks]
  const uint8_t* zeros = nullptr;                        // [n, ceil(blocks * bits / 8)], or null
  const float* float_zeros = nullptr;                    // [n, blocks], or null; without either, half the range
  const float* bias = nullptr;                           // [n], or null
  float* c = nullptr;

  static constexpr int32_t kColumns = 4, kTileColumns = 16, kChunk = 512;
  // Each row unpacks the weights again; bytes unpack 4 times faster.
  bool few() const { return !tiles && rows <= (integers ? 3 : 1); }
  int32_t blocks() const { return (k + block - 1) / block; }
  // Weights are unpacked 32 at a time: the data prepared for a block of 16 ends in zeros.
  int32_t padded_block() const { return block < 32 ? 32 : block; }
  int32_t padded_k() const { return blocks() * padded_block(); }
  size_t column_bytes() const { return static_cast<size_t>(blocks()) * (block * bits / 8); }
  // Elements [rows, padded_k], of up to 4 bytes; for each block of a row its scale, and its sum (times the scale).
  float* row_scales() const { return static_cast<float*>(prepared) + static_cast<size_t>(rows) * padded_k(); }
  float* row_sums() const { return row_scales() + static_cast<size_t>(rows) * blocks(); }
  size_t prepared_bytes() const { return sizeof(float) * rows * (static_cast<size_t>(padded_k()) + 2 * blocks()); }
  bool needs_rows() const { return few() || integers; }  // tiles of floats read A itself

  // Tiles unpack floats this many blocks at a time.
  int32_t blocks_in_chunk() const { return block >= kChunk ? 1 : kChunk / block; }
  int32_t padded_blocks() const { return (blocks() + 31) / 32 * 32; }  // zero points are unpacked like weights
  int32_t units() const { return few() ? (n + kColumns - 1) / kColumns : (n + kTileColumns - 1) / kTileColumns; }
  size_t scratch_bytes() const {
    const size_t zero_points = sizeof(float) * (padded_blocks() + 32);
    if (few()) return zero_points;
    const size_t values = integers ? padded_k() : (blocks_in_chunk() * block + 32) * sizeof(float);
    return F32Gemm::kScratch + zero_points + kTileColumns * (values + 2 * sizeof(float) * blocks());
  }
};

using MicroKernel = void (*)(const void* arguments, void* scratch, int32_t begin, int32_t end);

// All micro-kernels: the member of the table, and the name under which each target exports it (microkernels/target.h).
// Arguments: the structs above.
#define PY_ORT_MICROKERNELS(X)          \
  X(f32_gemm, f32_gemm_6x8)             \
  X(f32_pack, f32_pack_8)               \
  X(f32_winograd, f32_winograd_2x2_3x3) \
  X(f32_depthwise, f32_depthwise_4x8)   \
  X(f32_pool, f32_pool_1x4)             \
  X(f32_map, f32_map_4)                 \
  X(f32_softmax, f32_softmax_1x4)       \
  X(f32_attention, f32_attention)       \
  X(f32_normalize, f32_normalize_1x4)   \
  X(i8_gemm, i8_gemm_6x8)               \
  X(i8_quantize, i8_quantize_16)        \
  X(i8_map, i8_map_16)                  \
  X(i8_pairs, i8_pairs)                 \
  X(i8_depthwise, i8_depthwise_4x8)     \
  X(block_rows, block_rows)             \
  X(block_columns, block_columns_1x4)   \
  X(block_tiles, block_tiles_4x8)       \
  X(recurrent_steps, recurrent_steps)

// The micro-kernels of one instruction set.
struct Microkernels {
#define PY_ORT_MEMBER(member, name) MicroKernel member;
  PY_ORT_MICROKERNELS(PY_ORT_MEMBER)
#undef PY_ORT_MEMBER
};

// Runs a micro-kernel over all its units, on the threads that are awake; `wake`: on sleeping threads, too. Returns
// false if there is no memory for the scratch space.
using MicroKernelRunner = bool (*)(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units,
                                   bool wake);

// The micro-kernels in use, whose module the page added (abi/microkernels.cc): relaxed SIMD or plain. Null in runs of
// sessions whose nodes run none.
const Microkernels& microkernels();
void use_microkernels(const Microkernels& table);
// Sets the function that runs micro-kernels on several workers, from the next run on.
void install_microkernel_runner(MicroKernelRunner runner, int workers);

bool run_microkernel(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units);
template <class Arguments>
bool run_microkernel(MicroKernel kernel, const Arguments& arguments) {
  return run_microkernel(kernel, &arguments, arguments.scratch_bytes(), arguments.units());
}

// Kernels registered in a file that includes this one may run micro-kernels: the page then brings them (kernel.h has
// the other answer).
constexpr bool may_run_microkernels(int) { return true; }

}  // namespace py_ort
