#include "test/collectives/support/timelines.h"

#include <fstream>
#include <stdexcept>

#include "collectives/schedule.h"

namespace kolo::test {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "kolo-timeline-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

std::set<std::string> Folder::names() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.insert(entry.path().filename());
  return names;
}

nlohmann::json read_timeline(const std::string& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

Sent sent_by(const std::vector<StepProfile>& profile, const std::string& prefix) {
  const std::vector<StepKind> kinds = {StepKind::kSend,
                                       StepKind::kReceiveSend,
                                       StepKind::kReceiveReduceSend,
                                       StepKind::kReceiveReduceCopySend,
                                       StepKind::kSendForAnswer,
                                       StepKind::kReceiveReduceAnswer,
                                       StepKind::kAnswer,
                                       StepKind::kReduceSend};
  std::set<std::string> names;
  for (const StepKind kind : kinds) names.insert(prefix + std::string(to_string(kind)));
  Sent sent;
  for (const StepProfile& one : profile) {
    if (!names.contains(std::string(one.kind))) continue;
    sent.bytes += one.bytes;
    sent.segments += one.steps;
  }
  return sent;
}

}  // namespace kolo::test
