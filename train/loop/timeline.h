// Timeline: what a rank does in some iterations, for a Chrome trace.
//
// Tracks of a rank: the training thread (data, operations of forward and backward, waits, the
// optimizer), and one for each bucket in exchange: queued, from its last gradient until its
// exchange starts; exchanged; received, until its update starts; applied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "tensor/profile.h"
#include "train/experiment/run_record.h"
#include "train/loop/seconds.h"

namespace kolo::train {

// Timeline of one rank. Only the training thread calls it. Records nothing outside begin() to
// end().
class Timeline {
 public:
  // Begins an iteration, and starts recording.
  void begin(std::string name);
  // Adds the iteration as a span, and stops recording.
  void end();
  bool is_on() const { return is_on_; }

  // `bucket`: its track; below 0: the training thread.
  void add(std::string_view name, Clock::time_point begin, Clock::time_point end, int bucket = -1);
  // Records the operations of the passes of `profile`. This and `parameters` must outlive them.
  void listen(tensor::Profile& profile, const tensor::Parameters& parameters);

  const std::vector<TimelineEvent>& events() const { return events_; }

 private:
  bool is_on_ = false;
  std::string name_;
  Clock::time_point began_;
  std::vector<TimelineEvent> events_;
};

// Seconds to add to this rank's clock to get rank 0's. Collective. 0 on the host of rank 0. On
// other hosts it is measured by ten round trips; the error is at most half of the shortest one.
double clock_offset(Communicator& communicator);

// Collective. Rank 0 gets the events of all ranks, by its clock; time 0 is the first event.
std::vector<TimelineEvent> gather_timeline(Communicator& communicator, const Timeline& mine);

}  // namespace kolo::train
