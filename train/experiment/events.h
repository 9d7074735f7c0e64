// Events that rank 0 sends to the process that started it: one JSON object per line, over an
// inherited descriptor.
#pragma once

#include "train/loop/observer.h"

namespace kolo::train {

// Writes each call as a line. Ignores a closed reader: if the launcher dies, the ranks are ended by
// other means.
class EventWriter final : public Observer {
 public:
  // The descriptor is borrowed. If it is below 0, all calls do nothing.
  explicit EventWriter(int descriptor) : descriptor_(descriptor) {}
  void progress(const ProgressNote& note) override;
  void epoch_ended(const EpochRecord& epoch) override;
  void finished(const RunRecord& record) override;

 private:
  void write_line(const std::string& line);

  int descriptor_;
};

// Reads lines until all writers are closed, and makes the same calls on `observer`. Ignores lines
// that are not events.
void read_events(int descriptor, Observer& observer);

}  // namespace kolo::train
