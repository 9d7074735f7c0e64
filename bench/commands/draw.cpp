#include "bench/commands/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "bench/cli/sizes.h"
#include "bench/output/atomic_file.h"
#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/communicator.h"

namespace kolo::bench {
namespace {

// Sizes in the picture, in pixels.
constexpr double kLeft = 112, kRight = 24, kTop = 64, kBottom = 92;
constexpr double kRow = 48, kBox = 22, kPlotWidth = 860;
constexpr double kLetter = 6.4;  // approximate width of a letter in a box's label
constexpr int kMostRanks = 64;
constexpr std::size_t kMostBoxes = 20'000;

struct Colour {
  const char* word;  // in the legend
  const char* fill;
  const char* ink;  // color of text on it
};
// Okabe and Ito's colors, which color-blind people can tell apart.
constexpr std::array<Colour, 6> kColours{{{"send", "#56B4E9", "black"},
                                          {"receive", "#009E73", "white"},
                                          {"receive and pass on", "#0072B2", "white"},
                                          {"reduce what arrives", "#D55E00", "white"},
                                          {"copy", "#999999", "black"},
                                          {"update", "#F0E442", "black"}}};

// Background colors of hosts' rows, and the lines of messages within a host and between hosts.
constexpr std::array<const char*, 4> kGrounds{"#ffffff", "#f3efe4", "#e9eef4", "#f2e9f1"};
constexpr const char* kInside = "stroke=\"#555\" stroke-width=\"0.9\"";
constexpr const char* kAcross = "stroke=\"#CC79A7\" stroke-width=\"2.2\" opacity=\"0.9\"";

// The color and the word for a kind of step.
struct Look {
  std::size_t colour;
  const char* word;
};

Look look_of(StepKind kind) {
  switch (kind) {
    case StepKind::kSend:
    case StepKind::kSendForAnswer:
      return {0, "send"};
    case StepKind::kAnswer:
      return {0, "answer"};
    case StepKind::kReceive:
    case StepKind::kReceiveAnswer:
      return {1, "receive"};
    case StepKind::kReceiveSend:
      return {2, "pass on"};
    case StepKind::kReceiveReduce:
    case StepKind::kReceiveReduceSend:
    case StepKind::kReceiveReduceCopySend:
    case StepKind::kReceiveReduceAnswer:
    case StepKind::kReduce:
    case StepKind::kReduceSend:
      return {3, "reduce"};
    case StepKind::kCopy:
      return {4, "copy"};
    case StepKind::kUpdate:
      break;
  }
  return {5, "update"};
}

std::vector<Schedule> program_of(const DrawRequest& request) {
  const Algorithm& algorithm = algorithms()[find_algorithm(request.collective, request.algorithm)];
  std::vector<Schedule> program;
  for (int rank = 0; rank < request.ranks; ++rank) {
    PlanRequest plan;
    plan.ranks.rank = plan.servers.rank = rank;
    plan.ranks.size = plan.servers.size = request.ranks;
    plan.ranks.root = request.root;
    plan.ranks.hosts = request.hosts;
    plan.ranks.can_answer = plan.servers.can_answer = request.can_answer;
    plan.servers.has_update = request.has_update;
    plan.servers.servers_work = request.servers == 0;
    plan.servers.servers.resize(
        static_cast<std::size_t>(request.servers == 0 ? request.ranks : request.servers));
    std::iota(plan.servers.servers.begin(), plan.servers.servers.end(), 0);
    program.push_back(algorithm.write(plan));
  }
  return program;
}

std::string name_of(const DrawRequest& request) {
  return request.algorithm.empty() ? std::string(algorithm_names(request.collective).front())
                                   : request.algorithm;
}

void require_servers(const DrawRequest& request) {
  if (request.servers == 0 && !request.has_update) return;
  if (!has_servers(request.collective)) {
    throw std::invalid_argument(fmt::format(
        "draw {}: --servers and --update are for push_pull, push and pull", request.name));
  }
  if (request.servers < 0 || request.servers >= request.ranks) {
    throw std::invalid_argument(
        fmt::format("--servers {}: expected 0 or more, and at least one of the {} ranks must be a "
                    "worker",
                    request.servers, request.ranks));
  }
}

// A tick distance of 1, 2 or 5 times a power of ten, so that about `ticks` fit.
double tick_of(double range, int ticks) {
  const double rough = range / ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// Number of segments that all steps of all ranks handle.
std::size_t boxes_of(const std::vector<Schedule>& program, const SimulationOptions& options) {
  Layout layout;
  layout.split(options.count, program[0].chunks, program[0].spans);
  std::size_t boxes = 0;
  for (const Schedule& schedule : program) {
    const auto slices = static_cast<std::size_t>(schedule.slices);
    for (const Step& step : schedule.steps) {
      const std::size_t bytes = layout.length(step.chunk) * options.element_bytes;
      const std::size_t segments = (bytes + options.segment_bytes - 1) / options.segment_bytes;
      if (segments > step.slice) boxes += (segments - step.slice + slices - 1) / slices;
    }
  }
  return boxes;
}

class Diagram {
 public:
  Diagram(const DrawRequest& request, const std::vector<Schedule>& program,
          const Simulation& played)
      : request_(request), program_(program), played_(played) {}

  std::string text() {
    const double width = kLeft + kPlotWidth + kRight;
    const double height = kTop + kRow * request_.ranks + kBottom;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" "
        "markerHeight=\"6\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0 L6,3 "
        "L0,6 z\" fill=\"#555\"/>"
        "</marker></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    draw_title();
    for (int rank = 0; rank < request_.ranks && has_hosts(); ++rank) draw_host(rank);
    draw_axis();
    draw_rows();
    for (const Passage& passage : played_.passages) draw(passage);  // behind the boxes
    for (const Event& event : played_.events) draw(event);
    draw_legend();
    return text_ + "</svg>\n";
  }

 private:
  double x(double us) const { return kLeft + us / std::max(played_.total_us, 1e-9) * kPlotWidth; }
  double y(int rank) const { return kTop + kRow * rank + kRow / 2; }
  double bottom() const { return kTop + kRow * request_.ranks; }

  void put(double at_x, double at_y, const char* anchor, const std::string& words,
           const std::string& more = "") {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x,
                         at_y, anchor, more, words);
  }

  void draw_title() {
    std::string title = fmt::format("{} by {}, {}", request_.name, name_of(request_),
                                    format_count(static_cast<std::size_t>(request_.ranks), "rank"));
    if (has_hosts()) title += fmt::format(" on {} hosts", std::ranges::max(request_.hosts) + 1);
    put(kLeft, 24, "start", title, " font-size=\"17\" font-weight=\"bold\"");
    put(kLeft, 44, "start",
        fmt::format("{} bytes in segments of {}; {:.4g} us in the model: latency {:g} us, overhead "
                    "{:g} us, copy {:.3g} GB/s, reduce {:.3g} GB/s",
                    request_.bytes, request_.segment_bytes, played_.total_us,
                    request_.costs.local.latency_us, request_.costs.overhead_us,
                    1e-3 / request_.costs.copy_us_per_byte,
                    1e-3 / request_.costs.reduce_us_per_byte),
        " fill=\"#444\"");
  }

  void draw_axis() {
    const double tick = tick_of(std::max(played_.total_us, 1e-9), 10);
    for (int i = 0; i * tick <= played_.total_us * 1.0001; ++i) {
      const double at = x(i * tick);
      text_ += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>\n", at, kTop,
          bottom());
      put(at, bottom() + 16, "middle", fmt::format("{:g}", i * tick));
    }
    put(kLeft + kPlotWidth / 2, bottom() + 34, "middle", "microseconds");
  }

  void draw_rows() {
    for (int rank = 0; rank < request_.ranks; ++rank) {
      text_ +=
          fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#bbb\"/>\n",
                      kLeft, y(rank), kLeft + kPlotWidth, y(rank));
      const char* role = rank < request_.servers ? ", server" : "";
      put(kLeft - 8, y(rank) + 4, "end", fmt::format("rank {}{}", rank, role));
    }
  }

  bool has_hosts() const { return !request_.hosts.empty(); }
  int host(int rank) const {
    return has_hosts() ? request_.hosts[static_cast<std::size_t>(rank)] : 0;
  }

  // The rows of a host share a background; the first row has the host's name.
  void draw_host(int rank) {
    text_ += fmt::format("<rect x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                         y(rank) - kRow / 2, kLeft + kPlotWidth + kRight, kRow,
                         kGrounds[static_cast<std::size_t>(host(rank)) % kGrounds.size()]);
    if (rank == 0 || host(rank) != host(rank - 1)) {
      put(kLeft - 8, y(rank) - 10, "end", fmt::format("host {}", host(rank)),
          " font-weight=\"bold\"");
    }
  }

  void draw(const Event& event) {
    const Step& step =
        program_[static_cast<std::size_t>(event.rank)].steps[static_cast<std::size_t>(event.step)];
    const double begin = x(event.begin_us);
    const double width = std::max(1.0, x(event.end_us) - begin);
    std::string about = fmt::format("rank {}: {}, chunk {}, segment {}: {} bytes", event.rank,
                                    to_string(step.kind), step.chunk, event.segment, event.bytes);
    if (step.from != kNobody) about += fmt::format(", from {}", step.from);
    if (step.to != kNobody) about += fmt::format(", to {}", step.to);
    const Look look = look_of(step.kind);
    const Colour& colour = kColours[look.colour];
    text_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"white\" stroke-width=\"0.5\"><title>{}</title></rect>\n",
        begin, y(event.rank) - kBox / 2, width, kBox, colour.fill, about);
    const std::string data = data_of(event, step);
    for (const std::string& label : {fmt::format("{} {}", look.word, data), data}) {
      if (width < kLetter * static_cast<double>(label.size()) + 4) continue;
      put(begin + width / 2, y(event.rank) + 4, "middle", label,
          fmt::format(" fill=\"{}\" font-size=\"11\" pointer-events=\"none\"", colour.ink));
      break;
    }
  }

  // The number on a box: the shortest text that identifies the data.
  std::string data_of(const Event& event, const Step& step) const {
    if (!has_segments()) return fmt::format("{}", step.chunk);
    if (program_[0].chunks == 1) return fmt::format("{}", event.segment);
    return fmt::format("{}.{}", step.chunk, event.segment);
  }
  const char* numbers() const {
    if (!has_segments()) return "chunk";
    return program_[0].chunks == 1 ? "segment" : "chunk.segment";
  }
  bool has_segments() const {
    return std::any_of(played_.events.begin(), played_.events.end(),
                       [](const Event& event) { return event.segment > 0; });
  }

  void draw(const Passage& passage) {
    const double down = passage.to > passage.from ? 1 : -1;
    const bool is_between_hosts = host(passage.from) != host(passage.to);
    text_ += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:.1f}\" x2=\"{:.2f}\" y2=\"{:.1f}\" {} "
        "marker-end=\"url(#tip)\"{}/>\n",
        x(passage.sent_us), y(passage.from) + down * kBox / 2, x(passage.arrived_us),
        y(passage.to) - down * kBox / 2, is_between_hosts ? kAcross : kInside,
        passage.is_answer ? " stroke-dasharray=\"3 2\"" : "");
  }

  bool has_colour(std::size_t colour) const {
    return std::any_of(played_.events.begin(), played_.events.end(), [&](const Event& event) {
      const Schedule& schedule = program_[static_cast<std::size_t>(event.rank)];
      return look_of(schedule.steps[static_cast<std::size_t>(event.step)].kind).colour == colour;
    });
  }

  void draw_legend() {
    double at = kLeft;
    for (std::size_t i = 0; i < kColours.size(); ++i) {
      if (!has_colour(i)) continue;
      text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", at,
                           bottom() + 46, kColours[i].fill);
      put(at + 17, bottom() + 56, "start", kColours[i].word);
      at += 40 + 7.4 * static_cast<double>(std::strlen(kColours[i].word));
    }
    const bool has_answers = std::any_of(played_.passages.begin(), played_.passages.end(),
                                         [](const Passage& passage) { return passage.is_answer; });
    put(kLeft, bottom() + 78, "start",
        fmt::format("number: {}; arrow: a message on its way{}{}", numbers(),
                    has_answers ? ", dashed: an answer in place" : "",
                    has_hosts() ? ", thick: between hosts" : ""),
        " fill=\"#444\"");
  }

  const DrawRequest& request_;
  const std::vector<Schedule>& program_;
  const Simulation& played_;
  std::string text_;
};

}  // namespace

std::vector<int> parse_hosts(std::string_view text, int ranks) {
  const auto refuse = [&] {
    throw std::invalid_argument(
        fmt::format("--hosts {}: expected a number of hosts from 1 to {}, or a number for each of "
                    "the {} ranks, "
                    "as in 0,0,1,1",
                    text, ranks, ranks));
  };
  std::vector<int> numbers;
  for (std::string_view rest = text; !rest.empty() || numbers.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    int number = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0) refuse();
    numbers.push_back(number);
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  const bool is_list = text.find(',') != std::string_view::npos;
  if (is_list ? static_cast<int>(numbers.size()) != ranks : numbers[0] < 1 || numbers[0] > ranks) {
    refuse();
  }
  std::vector<int> hosts;
  std::vector<int> known;
  for (int rank = 0; rank < ranks; ++rank) {
    const int name = is_list ? numbers[static_cast<std::size_t>(rank)] : rank * numbers[0] / ranks;
    const auto found = std::ranges::find(known, name);
    hosts.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(name);
  }
  return hosts;
}

std::string diagram(const DrawRequest& request) {
  if (request.ranks < 1 || request.ranks > kMostRanks) {
    throw std::invalid_argument(
        fmt::format("--ranks {}: a picture has room for 1 to {}", request.ranks, kMostRanks));
  }
  if (request.root < 0 || request.root >= request.ranks) {
    throw std::invalid_argument(
        fmt::format("--root {}: expected 0 to {}", request.root, request.ranks - 1));
  }
  require_servers(request);
  const auto program = program_of(request);
  SimulationOptions options;
  const bool has_data = request.collective != Collective::kBarrier;
  options.count = has_data ? request.bytes / options.element_bytes : kBarrierCount;
  options.segment_bytes = request.segment_bytes;
  options.hosts = request.hosts;
  const std::size_t boxes =
      boxes_of(program, options);  // refuse before the simulation, which may take long
  if (boxes > kMostBoxes) {
    throw std::invalid_argument(fmt::format(
        "the picture would have {} boxes, and more than {} are not readable; take fewer "
        "--bytes, fewer ranks or longer --segment-bytes",
        boxes, kMostBoxes));
  }
  const Simulation played = simulate(program, request.costs, options);
  return Diagram(request, program, played).text();
}

std::string step_table(const DrawRequest& request) {
  std::string text;
  for (const Schedule& schedule : program_of(request)) text += describe(schedule) + "\n";
  return text;
}

int run_draw(const DrawRequest& request) {
  const std::string picture = diagram(request);
  const std::string file = !request.out.empty() ? request.out
                                                : fmt::format("{}_{}_{}.svg", request.name,
                                                              name_of(request), request.ranks);
  write_whole(file, picture, "--out");
  std::fputs(step_table(request).c_str(), stdout);
  fmt::print("{}\n", file);
  if (std::fflush(stdout) != 0) {
    throw std::runtime_error(
        fmt::format("standard output: cannot write the table: {}", std::strerror(errno)));
  }
  return 0;
}

}  // namespace kolo::bench
