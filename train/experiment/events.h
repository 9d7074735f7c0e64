// What rank 0 tells the process that started it: one JSON object a line, over an inherited
// descriptor.
#pragma once

#include "train/loop/observer.h"

namespace kolo::train {

// Writes each call as a line. A reader that is gone is no failure: the launcher's death ends the
// ranks by other means.
class EventWriter final : public Observer {
 public:
  // The descriptor is borrowed; below 0: all calls do nothing.
  explicit EventWriter(int descriptor) : descriptor_(descriptor) {}
  void progress(const ProgressNote& note) override;
  void finished(const RunRecord& record) override;

 private:
  void write_line(const std::string& line);

  int descriptor_;
};

// Reads lines until their writers are gone, and makes the same calls here. Lines that are no
// events are dropped.
void read_events(int descriptor, Observer& observer);

}  // namespace kolo::train
