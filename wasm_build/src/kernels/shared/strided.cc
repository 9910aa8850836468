#include "kernels/shared/strided.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>

namespace py_ort {

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) strides[i] = step;
  return strides;
}

namespace {

struct Axis { int64_t size, from, to; };

// y[i, j] = x[j, i] of 4 by 4 elements. `x` is contiguous along i and steps along j, `y` the reverse.
inline void transpose_4x4(const uint32_t* x, ptrdiff_t x_step, uint32_t* y, ptrdiff_t y_step) {
  const v128_t a = wasm_v128_load(x), b = wasm_v128_load(x + x_step), c = wasm_v128_load(x + 2 * x_step),
               d = wasm_v128_load(x + 3 * x_step);
  const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  const v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  wasm_v128_store(y, wasm_i64x2_shuffle(ab_low, cd_low, 0, 2));
  wasm_v128_store(y + y_step, wasm_i64x2_shuffle(ab_low, cd_low, 1, 3));
  wasm_v128_store(y + 2 * y_step, wasm_i64x2_shuffle(ab_high, cd_high, 0, 2));
  wasm_v128_store(y + 3 * y_step, wasm_i64x2_shuffle(ab_high, cd_high, 1, 3));
}
template <class T>
inline void transpose_4x4(const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_step) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) y[i * y_step + j] = x[j * x_step + i];
}

// y[i] = {a[i], b[i], c[i]} of 4 elements, for an image's colors.
inline void interleave_3x4(const uint32_t* x, ptrdiff_t x_step, uint32_t* y) {
  const v128_t a = wasm_v128_load(x), b = wasm_v128_load(x + x_step), c = wasm_v128_load(x + 2 * x_step);
  const v128_t ab = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), bc = wasm_i32x4_shuffle(b, c, 1, 5, 2, 6),
               ca = wasm_i32x4_shuffle(c, a, 2, 7, 3, 3);
  wasm_v128_store(y, wasm_i32x4_shuffle(ab, c, 0, 1, 4, 2));
  wasm_v128_store(y + 4, wasm_i32x4_shuffle(bc, a, 0, 1, 6, 2));
  wasm_v128_store(y + 8, wasm_i32x4_shuffle(ca, b, 0, 1, 7, 2));
}

// Out of line, like copy_axes: browsers optimize whole functions, and need to optimize only the widths in use.
template <class T>
[[gnu::noinline]] void transpose_plane(const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_step, ptrdiff_t rows,
                                       ptrdiff_t columns) {
  // 16 by 16 at a time: a cache line of floats on both sides.
  constexpr ptrdiff_t block = 16;
  const ptrdiff_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  ptrdiff_t begin = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    if (columns == 3 && y_step == 3)
      for (; begin < whole_rows; begin += 4) interleave_3x4(x + begin, x_step, y + 3 * begin);
  }
  for (ptrdiff_t i0 = 0; i0 < whole_rows; i0 += block)
    for (ptrdiff_t j0 = 0; j0 < whole_columns; j0 += block)
      for (ptrdiff_t i = i0, i_end = std::min(whole_rows, i0 + block); i < i_end; i += 4)
        for (ptrdiff_t j = j0, j_end = std::min(whole_columns, j0 + block); j < j_end; j += 4)
          transpose_4x4(x + j * x_step + i, x_step, y + i * y_step + j, y_step);
  for (ptrdiff_t i = begin; i < rows; ++i)
    for (ptrdiff_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) y[i * y_step + j] = x[j * x_step + i];
}

template <class T>
inline void copy_row(const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_step, ptrdiff_t count) {
  if (x_step == 1 && y_step == 1) copy_run(x, y, count);
  else if (x_step == 0 && y_step == 1) std::fill_n(y, count, *x);
  else
    for (ptrdiff_t i = 0; i < count; ++i) y[i * y_step] = x[i * x_step];
}

template <class T>
[[gnu::noinline]] void copy_axes(const T* x, T* y, std::vector<Axis> axes) {
  if (axes.empty()) {
    *y = *x;
    return;
  }
  // If `x` is contiguous along an axis other than the last, the two axes are a transposed plane.
  Axis plane{};
  if constexpr (!std::is_same_v<T, std::string>) {
    if (axes.back().from != 1 && axes.back().to == 1) {
      const auto unit =
          std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.from == 1 && a.size >= 2; });
      if (unit != axes.end()) {
        plane = *unit;
        axes.erase(unit);
      }
    }
  }
  const Axis last = axes.back();
  axes.pop_back();
  // The loop around the rows is a plain one; only further axes use counters.
  Axis next{1, 0, 0};
  if (!axes.empty()) {
    next = axes.back();
    axes.pop_back();
  }
  Dims index(axes.size());
  int64_t rows = 1;
  for (const Axis& axis : axes) rows *= axis.size;
  // A short row repeated: each copy doubles the size.
  const bool repeats = !plane.size && next.from == 0 && last.from == 1 && last.to == 1 && next.to == last.size;
  for (int64_t row = 0; row < rows; ++row) {
    if (repeats) {
      copy_run(x, y, last.size);
      for (int64_t done = 1; done < next.size; done *= 2)
        copy_run(y, y + done * last.size, std::min(done, next.size - done) * last.size);
    } else {
      const T* from = x;
      T* to = y;
      for (ptrdiff_t i = 0, n = next.size; i < n; ++i, from += next.from, to += next.to) {
        if (plane.size) transpose_plane(from, last.from, to, plane.to, plane.size, last.size);
        else copy_row(from, last.from, to, last.to, last.size);
      }
    }
    for (size_t d = axes.size(); d-- > 0;) {
      x += axes[d].from;
      y += axes[d].to;
      if (++index[d] < axes[d].size) break;
      x -= axes[d].from * axes[d].size;
      y -= axes[d].to * axes[d].size;
      index[d] = 0;
    }
  }
}

// Joins the last axes to one while they are contiguous: fewer, longer rows.
std::vector<std::vector<int64_t>> joined(std::vector<std::vector<int64_t>> maps) {
  const auto is_whole = [](const std::vector<int64_t>& map) {
    for (size_t i = 0; i < map.size(); ++i)
      if (map[i] != static_cast<int64_t>(i)) return false;
    return true;
  };
  constexpr size_t most = 1 << 20;  // entries
  while (maps.size() > 1 && maps.back().size() < 512 && maps.end()[-2].size() * maps.back().size() < most &&
         is_whole(maps.back())) {
    const size_t inner = maps.back().size();
    maps.pop_back();
    std::vector<int64_t> both;
    for (const int64_t start : maps.back())
      for (size_t i = 0; i < inner; ++i) both.push_back(start < 0 ? -1 : start + static_cast<int64_t>(i));
    maps.back() = std::move(both);
  }
  return maps;
}

// y[i] = x[at[i]]. A separate function, called for each row.
template <class T>
[[gnu::noinline]] void pick(const T* __restrict x, const int64_t* __restrict at, T* __restrict y, ptrdiff_t count) {
  for (ptrdiff_t i = 0; i < count; ++i) y[i] = x[at[i]];
}

template <class T>
[[gnu::noinline]] void mapped_rows(const T* x, T* y, const std::vector<std::vector<int64_t>>& maps, const T& fill) {
  const std::vector<int64_t>& last = maps.back();
  const auto count = static_cast<int64_t>(last.size());
  // The contiguous part of a row in `x`, from the first element that is not filled.
  int64_t first = 0;
  while (first < count && last[first] < 0) ++first;
  int64_t run = first;
  while (run < count && last[run] == last[first] + (run - first)) ++run;
  const bool filled = std::any_of(last.begin() + run, last.end(), [](int64_t at) { return at < 0; });
  Dims index(maps.size() - 1);
  int64_t rows = 1, before = -1;  // the start of the row before, or negative
  for (size_t d = 0; d + 1 < maps.size(); ++d) rows *= static_cast<int64_t>(maps[d].size());
  for (int64_t row = 0; row < rows; ++row, y += count) {
    int64_t base = 0;
    bool outside = false;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t at = maps[d][static_cast<size_t>(index[d])];
      outside |= at < 0;
      base += at;
    }
    if (outside) {
      std::fill_n(y, count, fill);
    } else if (base == before) {
      copy_run(y - count, y, count);
    } else {
      std::fill_n(y, first, fill);
      if (run > first) copy_run(x + base + last[first], y + first, run - first);
      if (filled) {
        for (int64_t i = run; i < count; ++i) y[i] = last[i] < 0 ? fill : x[base + last[i]];
      } else {
        pick(x + base, last.data() + run, y + run, count - run);
      }
    }
    before = outside ? -1 : base;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < static_cast<int64_t>(maps[d].size())) break;
      index[d] = 0;
    }
  }
}

}  // namespace

void strided_copy(const Tensor& from, StridedView from_view, Tensor& to, StridedView to_view, Dims dims) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return;
    if (dims[i] == 1) continue;
    const Axis axis{dims[i], from_view.strides[i], to_view.strides[i]};
    if (!axes.empty() && axes.back().from == axis.from * axis.size && axes.back().to == axis.to * axis.size)
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    else axes.push_back(axis);
  }
  visit_width(from.dtype, [&]<class T>() {
    copy_axes(elements<T>(from) + from_view.offset, mutable_elements<T>(to) + to_view.offset, std::move(axes));
  });
}

std::vector<OffsetMap> whole_axes(const Dims& dims) {
  const Dims strides = strides_of(dims);
  std::vector<OffsetMap> maps;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    OffsetMap& map = maps.emplace_back(static_cast<size_t>(dims[axis]));
    for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<int64_t>(i) * strides[axis];
  }
  return maps;
}

void mapped_copy(const Tensor& from, const std::vector<OffsetMap>& maps, const Tensor* fill, Tensor& to) {
  if (to.count() == 0) return;
  visit_width(from.dtype, [&]<class T>() {
    const T value = fill ? *elements<T>(*fill) : T{};
    if (maps.empty()) *mutable_elements<T>(to) = *elements<T>(from);
    else mapped_rows(elements<T>(from), mutable_elements<T>(to), joined(maps), value);
  });
}

}  // namespace py_ort
