#include "train/report/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace kolo::train {
namespace {

// One row: a layer, or another part of an iteration, which has only `total`.
struct ProfileRow {
  std::string name, kind;
  double forward = 0, backward = 0, total = 0;  // seconds
  double flops = 0;
};

const RankRecord& first_rank(const RunRecord& run) { return run.ranks.front(); }

// Sums over the runs, which have the same layers: first layers in the order of forward, then the
// other parts of an iteration.
std::vector<ProfileRow> summed_rows(const std::vector<const RunRecord*>& runs) {
  std::vector<ProfileRow> rows;
  for (const LayerRecord& layer : runs.front()->layers) rows.push_back({layer.name, layer.kind});
  ProfileRow other{std::string(kPartNames.back()), ""};
  for (const RunRecord* run : runs) {
    other.total += first_rank(*run).step_seconds;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const LayerRecord& layer = run->layers[i];
      rows[i].forward += layer.forward;
      rows[i].backward += layer.backward;
      rows[i].total += layer.forward + layer.backward;
      rows[i].flops += layer.flops;
      other.total -= layer.forward + layer.backward;
    }
  }
  for (const Part part : {Part::data, Part::exposed, Part::optimizer}) {
    const auto index = static_cast<std::size_t>(part);
    ProfileRow row{part == Part::exposed ? "exposed communication" : std::string(kPartNames[index]),
                   ""};
    for (const RunRecord* run : runs) row.total += first_rank(*run).parts[index];
    other.total -= row.total;
    rows.push_back(std::move(row));
  }
  other.total = std::max(0.0, other.total);
  rows.push_back(std::move(other));
  return rows;
}

// Replaces the rows after the first `most` by their sum.
void shorten(std::vector<ProfileRow>& rows, std::size_t most) {
  if (rows.size() <= most) return;
  ProfileRow rest{fmt::format("{} more", rows.size() - most), ""};
  for (std::size_t i = most; i < rows.size(); ++i) {
    rest.forward += rows[i].forward;
    rest.backward += rows[i].backward;
    rest.total += rows[i].total;
  }
  rows.resize(most);
  rows.push_back(std::move(rest));
}

}  // namespace

Table profile_table(const Report& report, const std::string& arm, std::size_t most) {
  const std::vector<const RunRecord*> runs = runs_of(report, arm);
  std::vector<ProfileRow> rows = summed_rows(runs);
  std::ranges::stable_sort(rows, std::greater(), &ProfileRow::total);
  shorten(rows, most);
  double all = 0;
  for (const ProfileRow& row : rows) all += row.total;
  Table table{{"kind", "forward, ms", "backward, ms", "both, ms", "%", "GFLOP/s"}, {}};
  const auto ms = [&runs](double seconds) {
    return seconds > 0 ? fmt::format("{:.3f}", 1e3 * seconds / static_cast<double>(runs.size()))
                       : std::string("-");
  };
  for (const ProfileRow& row : rows) {
    const bool has_rate = row.flops > 0 && row.total > 0;
    table.rows.push_back({row.name,
                          {row.kind, ms(row.forward), ms(row.backward), ms(row.total),
                           fmt::format("{:.1f}", all > 0 ? 100 * row.total / all : 0),
                           has_rate ? fmt::format("{:.1f}", row.flops / row.total / 1e9) : "-"}});
  }
  return table;
}

}  // namespace kolo::train
