#include "train/data/glyphs.h"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kolo::train {
namespace {

// The paths of ten digits. "@6" is the 6 rotated by half a turn, common in real house numbers.
using Design = std::array<std::string_view, 10>;

constexpr Design kGrotesque = {
    "M30 2 C12 2 4 22 4 50 C4 78 12 98 30 98 C48 98 56 78 56 50 C56 22 48 2 30 2",
    "M12 24 C24 20 32 14 36 2 L36 98",
    "M6 30 C6 12 16 2 31 2 C46 2 55 12 55 26 C55 40 46 48 32 58 C16 69 6 78 5 97 L56 97",
    "M6 26 C8 10 18 2 30 2 C44 2 53 11 53 25 C53 38 44 46 26 47 C46 47 56 57 56 72 C56 88 45 98 30 "
    "98 "
    "C15 98 5 89 4 73",
    "M44 98 L44 2 L4 68 L58 68",
    "M52 3 L15 3 L9 48 C14 41 22 37 31 37 C46 37 56 49 56 66 C56 86 45 98 29 98 C15 98 6 90 4 77",
    "M53 22 C50 9 42 2 31 2 C13 2 4 22 4 54 C4 84 14 98 30 98 C46 98 56 86 56 68 C56 50 46 40 32 "
    "40 "
    "C18 40 6 50 5 66",
    "M4 4 L56 4 C38 26 24 58 21 98",
    "M30 2 C16 2 8 11 8 24 C8 38 17 46 30 46 C43 46 52 38 52 24 C52 11 44 2 30 2 "
    "M30 46 C14 46 4 56 4 72 C4 88 15 98 30 98 C45 98 56 88 56 72 C56 56 46 46 30 46",
    "@6",
};

constexpr Design kOctagon = {
    "M16 2 L44 2 L56 16 L56 84 L44 98 L16 98 L4 84 L4 16 L16 2",
    "M16 18 L32 2 L32 98",
    "M4 18 L16 2 L44 2 L56 16 L56 38 L4 80 L4 98 L56 98",
    "M4 16 L16 2 L44 2 L56 16 L56 36 L44 48 L22 48 M44 48 L56 60 L56 84 L44 98 L16 98 L4 84",
    "M46 98 L46 2 L36 2 L4 62 L4 70 L58 70",
    "M56 2 L6 2 L6 44 L42 40 L56 54 L56 84 L44 98 L16 98 L4 84",
    "M54 14 L44 2 L16 2 L4 16 L4 84 L16 98 L44 98 L56 84 L56 58 L44 46 L4 46",
    "M4 2 L56 2 L56 14 L26 60 L26 98",
    "M16 2 L44 2 L54 14 L54 36 L44 47 L16 47 L6 36 L6 14 L16 2 "
    "M16 47 L4 60 L4 84 L16 98 L44 98 L56 84 L56 60 L44 47",
    "@6",
};

constexpr Design kHandwritten = {
    "M36 4 C16 0 4 28 5 56 C6 84 18 98 32 96 C48 94 56 66 54 40 C52 16 44 4 30 6",
    "M22 22 L38 4 L34 97",
    "M8 26 C10 8 26 0 40 6 C54 14 50 36 38 54 C28 70 14 84 6 94 C18 86 28 90 38 94 C46 97 52 96 57 "
    "88",
    "M10 10 C24 0 48 2 48 22 C48 38 34 46 22 46 C40 44 54 54 54 72 C54 92 30 102 6 90",
    "M16 4 C14 22 10 42 6 60 C22 58 40 58 58 58 M42 30 L38 98",
    "M14 6 L10 44 C28 36 54 42 54 66 C54 88 32 102 6 92 M13 6 L52 3",
    "M44 4 C22 18 6 46 6 70 C6 88 16 98 30 97 C46 96 54 84 53 70 C52 56 40 50 28 54 C16 58 8 68 8 "
    "78",
    "M6 8 C22 12 40 10 56 5 C44 30 30 62 24 98 M14 52 L48 48",
    "M50 14 C38 -2 10 4 12 24 C14 42 52 50 52 74 C52 96 12 104 8 78 C6 54 46 42 48 22 C49 16 50 12 "
    "44 6",
    "M50 26 C46 6 12 4 8 28 C6 50 38 54 50 26 C52 50 48 76 40 98",
};

constexpr Design kSerif = {
    "M30 2 C16 2 6 18 6 50 C6 82 16 98 30 98 C44 98 54 82 54 50 C54 18 44 2 30 2",
    "M14 14 C22 12 28 8 32 2 L32 98 M14 98 L50 98",
    "M8 28 C4 18 14 2 30 2 C46 2 54 14 54 28 C54 46 28 66 6 96 L50 96 C54 96 56 92 57 82",
    "M8 22 C8 10 18 2 30 2 C44 2 50 12 50 24 C50 38 38 46 22 47 C42 47 55 56 55 72 C55 88 44 98 28 "
    "98 "
    "C14 98 6 90 6 80",
    "M42 98 L42 2 L2 70 L58 70 M28 98 L56 98",
    "M52 2 L16 4 L12 46 C20 40 28 38 34 38 C48 38 55 50 55 66 C55 86 42 98 26 98 C14 98 6 92 6 82",
    "M50 4 C26 14 5 40 5 68 C5 88 16 98 30 98 C46 98 55 86 55 70 C55 54 46 44 32 44 C18 44 7 56 6 "
    "70",
    "M5 18 L7 4 L56 4 C40 30 28 62 26 98",
    "M30 47 C14 40 9 32 9 22 C9 10 18 2 30 2 C43 2 51 10 51 22 C51 34 42 40 30 47 "
    "C14 54 4 62 4 76 C4 90 15 98 30 98 C46 98 56 89 56 76 C56 62 46 54 30 47",
    "@6",
};

constexpr Design kGeometric = {
    "M30 2 C14 2 8 12 8 26 L8 74 C8 88 14 98 30 98 C46 98 52 88 52 74 L52 26 C52 12 46 2 30 2",
    "M14 22 L34 2 L34 98",
    "M8 26 C8 10 18 2 30 2 C44 2 52 12 52 26 C52 34 50 38 46 44 L8 98 L54 98",
    "M8 2 L52 2 L28 40 C44 40 53 52 53 68 C53 88 42 98 28 98 C16 98 8 92 6 80",
    "M34 2 L6 72 L56 72 M42 44 L42 98",
    "M50 2 L12 2 L12 44 L30 42 C46 42 53 54 53 70 C53 88 42 98 28 98 C16 98 8 92 6 82",
    "M40 2 L12 54 C8 62 6 66 6 72 C6 88 16 98 30 98 C44 98 54 88 54 72 C54 58 44 48 30 48 C22 48 "
    "16 50 12 56",
    "M6 2 L54 2 L24 98",
    "M30 2 C18 2 10 11 10 24 C10 37 18 46 30 46 C42 46 50 37 50 24 C50 11 42 2 30 2 "
    "M30 46 C16 46 6 57 6 72 C6 87 16 98 30 98 C44 98 54 87 54 72 C54 57 44 46 30 46",
    "@6",
};

constexpr std::array kDesigns = {kGrotesque, kOctagon, kHandwritten, kSerif, kGeometric};
constexpr int kPiecesPerCurve = 7;

// Parses one path into segments. The paths are constants of this file, so an error in one is a bug.
class PathReader {
 public:
  explicit PathReader(std::string_view path) : rest_(path) {}

  std::vector<Segment> read() {
    while (skip_spaces(), !rest_.empty()) {
      const char command = rest_.front();
      rest_.remove_prefix(1);
      if (command == 'M') {
        pen_ = point();
      } else if (command == 'L') {
        line_to(point());
      } else if (command == 'C') {
        const Point first = point();
        const Point second = point();
        curve_to(first, second, point());
      } else {
        throw std::logic_error("glyphs: a path has the unknown command '" +
                               std::string(1, command) + "'");
      }
    }
    return std::move(segments_);
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  float number() {
    skip_spaces();
    int value = 0;
    const auto result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (result.ec != std::errc{}) throw std::logic_error("glyphs: a path lacks a number");
    rest_.remove_prefix(static_cast<std::size_t>(result.ptr - rest_.data()));
    return static_cast<float>(value);
  }
  Point point() {
    const float x = number();
    return {x, number()};
  }
  void line_to(Point to) {
    segments_.push_back({pen_, to});
    pen_ = to;
  }
  void curve_to(Point first, Point second, Point end) {
    const Point start = pen_;
    for (int piece = 1; piece <= kPiecesPerCurve; ++piece) {
      const float t = static_cast<float>(piece) / kPiecesPerCurve;
      const float s = 1 - t;
      const float a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t;
      line_to({a * start.x + b * first.x + c * second.x + d * end.x,
               a * start.y + b * first.y + c * second.y + d * end.y});
    }
  }

  std::string_view rest_;
  Point pen_;
  std::vector<Segment> segments_;
};

using DesignSegments = std::array<std::vector<Segment>, 10>;

DesignSegments flatten(const Design& design) {
  DesignSegments result;
  for (std::size_t digit = 0; digit < 10; ++digit) {
    if (design[digit].front() == '@') continue;
    result[digit] = PathReader(design[digit]).read();
  }
  for (std::size_t digit = 0; digit < 10; ++digit) {
    if (design[digit].front() != '@') continue;
    result[digit] = result[static_cast<std::size_t>(design[digit][1] - '0')];
    for (Segment& segment : result[digit]) {
      segment.from = {kGlyphWidth - segment.from.x, kGlyphHeight - segment.from.y};
      segment.to = {kGlyphWidth - segment.to.x, kGlyphHeight - segment.to.y};
    }
  }
  return result;
}

}  // namespace

int glyph_designs() { return static_cast<int>(kDesigns.size()); }

std::span<const Segment> glyph(int design, int digit) {
  static const std::vector<DesignSegments> all = [] {
    std::vector<DesignSegments> result;
    for (const Design& one : kDesigns) result.push_back(flatten(one));
    return result;
  }();
  if (design < 0 || design >= glyph_designs() || digit < 0 || digit > 9) {
    throw std::invalid_argument("glyph: no digit " + std::to_string(digit) + " in design " +
                                std::to_string(design));
  }
  return all[static_cast<std::size_t>(design)][static_cast<std::size_t>(digit)];
}

}  // namespace kolo::train
