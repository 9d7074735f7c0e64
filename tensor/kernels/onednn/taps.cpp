#include "tensor/kernels/onednn/taps.h"

#include <algorithm>

namespace kolo::tensor::onednn {

namespace {

// Output positions along one axis, [begin, end), whose input at offset `tap` of the window is
// inside the image.
struct Axis {
  std::int64_t begin, end, shift;  // input = output * stride + shift

  Axis(std::int64_t in, std::int64_t out, std::int64_t tap, const Conv2dShape& c)
      : shift(tap - c.padding) {
    begin = 0;
    while (begin < out && begin * c.stride + shift < 0) ++begin;
    end = out;
    while (end > begin && (end - 1) * c.stride + shift >= in) --end;
  }
};

// Adds the runs of one tap. Merges pixels into the longest possible run with a constant step: all
// pixels if input and output have the same layout; columns of all images if the distance between
// rows is constant across images; else one pixel position of all images.
void add_runs(const Conv2dShape& c, std::int64_t tap, std::vector<Run>& runs) {
  const Axis h(c.in_h, c.out_h(), tap / c.kernel, c), w(c.in_w, c.out_w(), tap % c.kernel, c);
  if (h.begin >= h.end || w.begin >= w.end) return;
  const std::int64_t out_pixels = c.out_h() * c.out_w(), in_pixels = c.in_h * c.in_w;
  const bool has_all_rows =
      h.begin == 0 && h.end == c.out_h() && h.shift == 0 && c.in_h == c.out_h() * c.stride;
  if (has_all_rows && c.stride == 1 && w.end - w.begin == c.out_w() && c.in_w == c.out_w()) {
    runs.push_back({tap, 0, 1, 0, 1, c.batch * out_pixels});
    return;
  }
  if (has_all_rows) {
    for (std::int64_t q = w.begin; q < w.end; ++q) {
      runs.push_back(
          {tap, q * c.stride + w.shift, c.in_w * c.stride, q, c.out_w(), c.batch * c.out_h()});
    }
    return;
  }
  for (std::int64_t p = h.begin; p < h.end; ++p) {
    for (std::int64_t q = w.begin; q < w.end; ++q) {
      runs.push_back({tap, (p * c.stride + h.shift) * c.in_w + q * c.stride + w.shift, in_pixels,
                      p * c.out_w() + q, out_pixels, c.batch});
    }
  }
}

// True if one multiplication computes the whole output, so that it need not be cleared first.
bool is_plain(const Conv2dShape& c) { return c.kernel == 1 && c.stride == 1 && c.padding == 0; }

}  // namespace

std::vector<Run> tap_runs(const Conv2dShape& shape) {
  std::vector<Run> runs;
  for (std::int64_t tap = 0; tap < shape.kernel * shape.kernel; ++tap) add_runs(shape, tap, runs);
  return runs;
}

bool prefers_taps(const Conv2dShape& c) {
  const std::int64_t pixels = c.out_h() * c.out_w();
  return is_plain(c) || pixels <= 4 || ((c.kernel == 1 || c.stride > 1) && pixels <= 16);
}

void taps_forward(const Conv2dShape& c, Multiplications& by, const void* x, const void* weight,
                  float* y) {
  if (!is_plain(c)) std::fill_n(y, c.batch * c.out_h() * c.out_w() * c.out, 0.0F);
  for (const Run& run : tap_runs(c)) {
    by.multiply(run.rows, c.out, c.in, by.at(x, run.in_begin * c.in, run.in_step * c.in),
                by.at(weight, run.tap * c.in * c.out, c.out), !is_plain(c),
                y + run.out_begin * c.out, run.out_step * c.out);
  }
}

void taps_backward_data(const Conv2dShape& c, Multiplications& by, const void* weight,
                        const void* dy, float* dx) {
  if (!is_plain(c)) std::fill_n(dx, c.batch * c.in_h * c.in_w * c.in, 0.0F);
  for (const Run& run : tap_runs(c)) {
    by.multiply(run.rows, c.in, c.out, by.at(dy, run.out_begin * c.out, run.out_step * c.out),
                by.at(weight, run.tap * c.in * c.out, c.out, true), !is_plain(c),
                dx + run.in_begin * c.in, run.in_step * c.in);
  }
}

void taps_backward_weight(const Conv2dShape& c, Multiplications& by, const void* x, const void* dy,
                          float* weight_gradient) {
  const std::vector<Run> runs = tap_runs(c);
  auto run = runs.begin();
  for (std::int64_t tap = 0; tap < c.kernel * c.kernel; ++tap) {
    float* const to = weight_gradient + tap * c.in * c.out;
    bool accumulates = false;
    for (; run != runs.end() && run->tap == tap; ++run) {
      by.multiply(c.in, c.out, run->rows, by.at(x, run->in_begin * c.in, run->in_step * c.in, true),
                  by.at(dy, run->out_begin * c.out, run->out_step * c.out), accumulates, to, c.out);
      accumulates = true;
    }
    if (!accumulates)
      std::fill_n(to, c.in * c.out, 0.0F);  // a tap that is always outside the image
  }
}

}  // namespace kolo::tensor::onednn
