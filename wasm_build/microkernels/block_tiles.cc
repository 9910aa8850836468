// Products of many rows with weights of few bits, as for prompts: two panels of 8 columns are unpacked, to bytes or to
// floats, and multiplied with all rows, tile by tile.
#include "py_ort/microkernels.h"

#include "microkernels/block_weights.h"

extern "C" void PY_ORT_FOR_TARGET(f32_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end);

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kPanel = 8, kPanels = BlockProduct::kTileColumns / kPanel;

// 32 weights of 8 columns, number `piece`, as bytes [k / 4, 8, 4]. Columns past the last repeat the last.
template <int Bits, int32_t Offset>
[[gnu::noinline]] void unpack_columns(const BlockProduct& p, int32_t column, int32_t piece, uint8_t* to) {
  const size_t byte = static_cast<size_t>(piece) * (p.block < 32 ? p.block : 32) * Bits / 8;
#pragma clang loop unroll(disable)
  for (int32_t half = 0; half < 2; ++half) {
    v128_t x[2][4];
#pragma clang loop unroll(full)
    for (int32_t c = 0; c < 4; ++c) {
      const int32_t wanted = column + half * 4 + c, from = wanted < p.n ? wanted : p.n - 1;
      unpack<Bits>(p.b + from * p.column_bytes() + byte, x[0][c], x[1][c]);
    }
#pragma clang loop unroll(full)
    for (int32_t part = 0; part < 2; ++part) {
      const v128_t low01 = wasm_i32x4_shuffle(x[part][0], x[part][1], 0, 4, 1, 5),
                   low23 = wasm_i32x4_shuffle(x[part][2], x[part][3], 0, 4, 1, 5),
                   high01 = wasm_i32x4_shuffle(x[part][0], x[part][1], 2, 6, 3, 7),
                   high23 = wasm_i32x4_shuffle(x[part][2], x[part][3], 2, 6, 3, 7);
      uint8_t* at = to + part * 128 + half * 16;
      wasm_v128_store(at, moved<Offset>(wasm_i64x2_shuffle(low01, low23, 0, 2)));
      wasm_v128_store(at + 32, moved<Offset>(wasm_i64x2_shuffle(low01, low23, 1, 3)));
      wasm_v128_store(at + 64, moved<Offset>(wasm_i64x2_shuffle(high01, high23, 0, 2)));
      wasm_v128_store(at + 96, moved<Offset>(wasm_i64x2_shuffle(high01, high23, 1, 3)));
    }
  }
}

// The data unpacked for a unit.
struct Unpacked {
  void* gemm;      // scratch space of the product of floats
  float* zeros;    // of one column
  float* scales;   // [panels][blocks][8]
  float* moves;    // minus zero points times scales, likewise
  uint8_t* bytes;  // for integers: [panels][padded_k / 4, 8, 4]
  float* floats;   // for floats: [panels][chunk, 8], and the excess that a block of 16 writes
  Unpacked(const BlockProduct& p, void* scratch) : gemm(scratch) {
    zeros = reinterpret_cast<float*>(static_cast<uint8_t*>(scratch) + F32Gemm::kScratch);
    scales = zeros + p.padded_blocks();
    moves = scales + kPanels * kPanel * p.blocks();
    floats = moves + kPanels * kPanel * p.blocks();
    bytes = reinterpret_cast<uint8_t*>(floats);
  }
};

template <int Bits, int32_t Offset>
[[gnu::noinline]] void unpack_scales(const BlockProduct& p, int32_t column, const Unpacked& u) {
  const int32_t blocks = p.blocks();
  for (int32_t c = 0; c < kPanels * kPanel; ++c) {
    const int32_t from = column + c < p.n ? column + c : p.n - 1;
    const float *zeros = zero_points<Bits>(p, from, u.zeros), *scales = p.scales + static_cast<size_t>(from) * blocks;
    size_t to = static_cast<size_t>(c / kPanel) * blocks * kPanel + c % kPanel;
    for (int32_t i = 0; i < blocks; ++i, to += kPanel)
      u.scales[to] = scales[i], u.moves[to] = scales[i] * (Offset - zeros[i]);
  }
}

template <int Bits, int32_t Offset>
void unpack_bytes(const BlockProduct& p, int32_t column, uint8_t* to) {
  for (int32_t piece = 0; piece < p.padded_k() / 32; ++piece, to += 32 * kPanel)
    unpack_columns<Bits, Offset>(p, column, piece, to);
}

// Unpacks blocks `first` to `last` of 8 columns to their values. A block of 16 is followed by 16 numbers, which the
// next block overwrites.
template <int Bits>
[[gnu::noinline]] void unpack_floats(const BlockProduct& p, int32_t column, int32_t first, int32_t last,
                                     const float* scales, const float* moves, float* to) {
  const int32_t pieces = p.padded_block() / 32;
  const v128_t byte = wasm_i32x4_splat(255);
  alignas(16) uint8_t bytes[32 * kPanel];
  for (int32_t block = first; block < last; ++block, to += p.block * kPanel) {
    for (int32_t piece = 0; piece < pieces; ++piece) {
      unpack_columns<Bits, 0>(p, column, block * pieces + piece, bytes);
      float* at = to + piece * 32 * kPanel;
      for (int32_t quad = 0; quad < 8; ++quad, at += 4 * kPanel) {
#pragma clang loop unroll(full)
        for (int32_t half = 0; half < 2; ++half) {
          const v128_t scale = simd::load(scales + block * kPanel + half * 4),
                       move = simd::load(moves + block * kPanel + half * 4);
          const v128_t four = wasm_v128_load(bytes + quad * 32 + half * 16);
          const v128_t k[] = {wasm_v128_and(four, byte), wasm_v128_and(wasm_u32x4_shr(four, 8), byte),
                              wasm_v128_and(wasm_u32x4_shr(four, 16), byte), wasm_u32x4_shr(four, 24)};
#pragma clang loop unroll(full)
          for (int32_t i = 0; i < 4; ++i)
            simd::store(at + i * kPanel + half * 4, simd::add(simd::mul(simd::float_of(k[i]), scale), move));
        }
      }
    }
  }
}

// Sums of 32 weights of 8 columns, four of k at a time.
struct WordTile {
  static constexpr int32_t kRows = 2;
  using Element = int16_t;
  v128_t sums[4];
  struct Weights {
    v128_t x[4];
    explicit Weights(const uint8_t* from) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i) x[i] = wasm_u16x8_load8x8(from + 8 * i);
    }
  };
  void clear() {
#pragma clang loop unroll(full)
    for (v128_t& sum : sums) sum = wasm_i32x4_splat(0);
  }
  void add(const int16_t* a, const Weights& w) {
    const v128_t x = wasm_v128_load64_splat(a);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) sums[i] = wasm_i32x4_add(sums[i], wasm_i32x4_dot_i16x8(w.x[i], x));
  }
  v128_t total(int32_t half) const {
    const v128_t x = sums[2 * half], y = sums[2 * half + 1];
    return wasm_i32x4_add(wasm_i32x4_shuffle(x, y, 0, 2, 4, 6), wasm_i32x4_shuffle(x, y, 1, 3, 5, 7));
  }
};
template <class Rows>
struct TileOf {
  using Type = WordTile;
};
#ifdef __wasm_relaxed_simd__
template <bool Pairs>
struct ByteTile {
  static constexpr int32_t kRows = 4;
  using Element = int8_t;
  v128_t sums[2];
  struct Weights {
    v128_t x[2];
    explicit Weights(const uint8_t* from) { x[0] = wasm_v128_load(from), x[1] = wasm_v128_load(from + 16); }
  };
  void clear() { sums[0] = sums[1] = wasm_i32x4_splat(0); }
  void add(const int8_t* a, const Weights& w) {
    const v128_t x = wasm_v128_load32_splat(a);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; ++i)
      sums[i] = Pairs ? wasm_i16x8_add(sums[i], dot_pairs(x, w.x[i])) : dot_bytes(x, w.x[i], sums[i]);
  }
  v128_t total(int32_t half) const { return Pairs ? wasm_i32x4_extadd_pairwise_i16x8(sums[half]) : sums[half]; }
};
template <>
struct TileOf<PairRows> {
  using Type = ByteTile<true>;
};
template <int32_t Offset>
struct TileOf<ByteRows<Offset>> {
  using Type = ByteTile<false>;
};
#endif

void store(const BlockProduct& p, int32_t row, int32_t column, v128_t left, v128_t right) {
  float* to = p.c + static_cast<size_t>(row) * p.n + column;
  const int32_t columns = p.n - column;
  store_some(to, left, columns);
  if (columns > 4) store_some(to + 4, right, columns - 4);
}

template <class Tile, int R>
[[gnu::noinline]] void multiply(const BlockProduct& p, int32_t row, int32_t column, const uint8_t* b,
                                const float* scales, const float* moves) {
  using Element = typename Tile::Element;
  const int32_t blocks = p.blocks(), pieces = p.padded_block() / 32;
  const Element* a = prepared_row<Element>(p, row);
  const float* row_scales = p.row_scales() + static_cast<size_t>(row) * blocks;
  const float* row_sums = p.row_sums() + static_cast<size_t>(row) * blocks;
  const int32_t step = p.padded_k();
  v128_t totals[R][2];
  const int32_t columns = p.n - column;
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) {
    totals[r][0] = p.bias ? load_some(p.bias + column, columns) : simd::splat(0);
    totals[r][1] = p.bias && columns > 4 ? load_some(p.bias + column + 4, columns - 4) : simd::splat(0);
  }
  for (int32_t block = 0; block < blocks; ++block) {
    const v128_t scale[] = {simd::load(scales + block * kPanel), simd::load(scales + block * kPanel + 4)},
                 move[] = {simd::load(moves + block * kPanel), simd::load(moves + block * kPanel + 4)};
    for (int32_t piece = 0; piece < pieces; ++piece, a += 32, b += 32 * kPanel) {
      Tile tile[R];
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) tile[r].clear();
#pragma clang loop unroll(disable)
      for (int32_t quad = 0; quad < 8; ++quad) {
        const typename Tile::Weights weights(b + quad * 4 * kPanel);
#pragma clang loop unroll(full)
        for (int r = 0; r < R; ++r) tile[r].add(a + r * step + quad * 4, weights);
      }
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) {
        const v128_t mine = load_splat(row_scales + r * blocks + block);
#pragma clang loop unroll(full)
        for (int32_t half = 0; half < 2; ++half)
          totals[r][half] =
              mul_add(simd::mul(wasm_f32x4_convert_i32x4(tile[r].total(half)), mine), scale[half], totals[r][half]);
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      const v128_t sum = load_splat(row_sums + r * blocks + block);
#pragma clang loop unroll(full)
      for (int32_t half = 0; half < 2; ++half) totals[r][half] = mul_add(sum, move[half], totals[r][half]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) store(p, row + r, column, totals[r][0], totals[r][1]);
}

template <class Rows, int Bits>
void run_integers(const BlockProduct& p, const Unpacked& u, int32_t column) {
  using Tile = typename TileOf<Rows>::Type;
  const int32_t panels = p.n - column > kPanel ? 2 : 1;
  for (int32_t panel = 0; panel < panels; ++panel)
    unpack_bytes<Bits, Rows::kOffset>(p, column + panel * kPanel,
                                      u.bytes + static_cast<size_t>(panel) * p.padded_k() * kPanel);
  for (int32_t row = 0; row < p.rows;) {
    const int32_t left = p.rows - row, rows = left >= Tile::kRows ? Tile::kRows : 1;
    for (int32_t panel = 0; panel < panels; ++panel) {
      const size_t at = static_cast<size_t>(panel) * kPanel;
      const uint8_t* b = u.bytes + at * p.padded_k();
      const float *scales = u.scales + at * p.blocks(), *moves = u.moves + at * p.blocks();
      const int32_t to = column + panel * kPanel;
      if (rows > 1) multiply<Tile, Tile::kRows>(p, row, to, b, scales, moves);
      else multiply<Tile, 1>(p, row, to, b, scales, moves);
    }
    row += rows;
  }
}

// Chunk by chunk of k, each added to C's contents.
template <int Bits>
void run_floats(const BlockProduct& p, const Unpacked& u, int32_t column) {
  F32Gemm g;
  g.rows = p.rows, g.n = p.n - column < kPanels * kPanel ? p.n - column : kPanels * kPanel;
  g.a_stride = p.k, g.b = u.floats;
  g.c = p.c + column, g.c_stride = g.z_stride = p.n;
  g.bias = p.bias ? p.bias + column : nullptr;
  const int32_t chunk = p.blocks_in_chunk();
  for (int32_t first = 0; first < p.blocks(); first += chunk) {
    const int32_t last = first + chunk < p.blocks() ? first + chunk : p.blocks();
    const int32_t k = first * p.block, end = last * p.block < p.k ? last * p.block : p.k;
    g.a = p.a + k, g.k = end - k;
    for (int32_t panel = 0; panel * kPanel < g.n; ++panel) {
      const size_t at = static_cast<size_t>(panel) * kPanel * p.blocks();
      unpack_floats<Bits>(p, column + panel * kPanel, first, last, u.scales + at, u.moves + at,
                          u.floats + static_cast<size_t>(panel) * kPanel * g.k);
    }
    PY_ORT_FOR_TARGET(f32_gemm_6x8)(&g, u.gemm, 0, g.units());
    g.bias = nullptr, g.z = g.c;
  }
}

}  // namespace

PY_ORT_MICROKERNEL(block_tiles_4x8)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const BlockProduct& p = *static_cast<const BlockProduct*>(arguments);
  const Unpacked u(p, scratch);
  fill_zero_points(p, u.zeros);
  for_rows(p, [&](auto bits, auto rows) {
    using Rows = decltype(rows);
    constexpr int kBits = decltype(bits)::value;
    for (int32_t unit = begin; unit < end; ++unit) {
      const int32_t column = unit * BlockProduct::kTileColumns;
      unpack_scales<kBits, Rows::kOffset>(p, column, u);
      if constexpr (sizeof(typename Rows::Element) == sizeof(float)) run_floats<kBits>(p, u, column);
      else run_integers<Rows, kBits>(p, u, column);
    }
  });
}

}  // namespace py_ort::PY_ORT_TARGET
