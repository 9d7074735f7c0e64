// Event files for TensorBoard, with scalars only.
//
// A file is a sequence of records: length (8 bytes, little endian), masked CRC-32C of these bytes
// (4), data, masked CRC-32C of the data (4). The data is a message Event of protocol buffers:
//
//   1 wall_time (double)   2 step (varint)   3 file_version (first record: "brain.Event:2")
//   5 summary: 1 value, each: 1 tag (string)   2 simple_value (float)
//
// Sources: tensorflow/core/lib/io/record_writer.h, tensorboard/compat/proto/{event,summary}.proto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/experiment/run_record.h"

namespace kolo::train {

struct Scalar {
  std::string tag;
  std::int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  float value = 0;
};

// The bytes of an event file.
std::string event_file(const std::vector<Scalar>& scalars, double start);

// Losses, accuracies and learning rate of each epoch, by iteration. `end`: the time of the last.
std::vector<Scalar> scalars_of(const std::vector<EpochRecord>& epochs, double end);

// CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(const std::string& bytes);

}  // namespace kolo::train
