#include "train/experiment/events.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "train/experiment/run_record_json.h"

namespace kolo::train {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProgressNote, activity, epoch, epochs, iteration, iterations,
                                   loss, images_per_second, test_accuracy)

namespace {

void dispatch(const std::string& line, Observer& observer) {
  const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object()) return;
  try {
    if (event.contains("progress")) observer.progress(event["progress"].get<ProgressNote>());
    if (event.contains("epoch")) observer.epoch_ended(event["epoch"].get<EpochRecord>());
    if (event.contains("finished")) observer.finished(event["finished"].get<RunRecord>());
  } catch (const nlohmann::json::exception&) {
    // An incomplete line, from a rank that was killed. The launcher reports its end.
  }
}

}  // namespace

void EventWriter::progress(const ProgressNote& note) {
  write_line(nlohmann::json{{"progress", note}}.dump());
}

void EventWriter::epoch_ended(const EpochRecord& epoch) {
  write_line(nlohmann::json{{"epoch", epoch}}.dump());
}

void EventWriter::finished(const RunRecord& record) {
  write_line(nlohmann::json{{"finished", record}}.dump());
}

void EventWriter::write_line(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t written = 0;
  while (descriptor_ >= 0 && written < text.size()) {
    const ssize_t count = write(descriptor_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

void read_events(int descriptor, Observer& observer) {
  std::string pending;
  std::array<char, 1 << 14> block{};
  while (true) {
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    pending.append(block.data(), static_cast<std::size_t>(count));
    std::size_t end = 0;
    while ((end = pending.find('\n')) != std::string::npos) {
      dispatch(pending.substr(0, end), observer);
      pending.erase(0, end + 1);
    }
  }
}

}  // namespace kolo::train
