#include "transports/settings.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <stdexcept>

#include "transports/base/suggestion.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/shape.h"

namespace kolo::inline v0 {

namespace {

constexpr long kMostTcpLanes = 16;
constexpr long kMostTimeoutMs = std::numeric_limits<int>::max();  // 24 days
constexpr std::string_view kPrefix = "KOLO_";

// Not settings of a job: read by builds, benchmarks and tests.
constexpr std::array kReadElsewhere = {"KOLO_BENCH_NETWORK", "KOLO_COMMIT", "KOLO_DEPS",
                                       "KOLO_TEST_DATA", "KOLO_TEST_PROGRAM"};

[[noreturn]] void fail(const char* name, const std::string& value, std::string_view expected) {
  throw std::invalid_argument(fmt::format("{}='{}' is not {}", name, value, expected));
}

std::optional<long> parse_number(std::string_view text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "65536", "64K", "64KiB", "1M": powers of 1024. Not "64KB", which may mean either.
std::optional<long> parse_bytes(std::string_view text, long most) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::size_t shift = 0;
  if (!unit.empty()) {
    const std::size_t place = std::string_view("KMGkmg").find(unit.front());
    const bool is_unit = unit.size() == 1 || unit.substr(1) == "iB";
    if (place == std::string_view::npos || !is_unit) return std::nullopt;
    shift = 10 * (place % 3 + 1);
  }
  if (number < 0 || number > most >> shift) return std::nullopt;
  return number << shift;
}

// Reads variables. A variable that is set but empty counts as not set, as in shells.
class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> text(const char* name) const {
    auto value = variables_(name);
    if (value && value->empty()) value.reset();
    return value;
  }

  std::optional<long> number(const char* name, long low, long high) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    const auto number = parse_number(*value);
    if (!number || *number < low || *number > high) {
      fail(name, *value, fmt::format("a number from {} to {}", low, high));
    }
    return number;
  }

  std::optional<std::size_t> bytes(const char* name, long low, long high) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    const auto bytes = parse_bytes(*value, high);
    if (!bytes || *bytes < low)
      fail(name, *value, fmt::format("a number of bytes from {} to {}, or 64K, 1M", low, high));
    return static_cast<std::size_t>(*bytes);
  }

  std::optional<int> integer(const char* name, int low) const {
    const auto value = number(name, low, std::numeric_limits<int>::max());
    return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  }

 private:
  const Variables& variables_;
};

WaitKind read_wait(const Reader& reader) {
  const auto text = reader.text("KOLO_WAIT");
  if (!text) return WaitKind::kAuto;
  for (const auto kind : {WaitKind::kAuto, WaitKind::kSpin, WaitKind::kYield, WaitKind::kBlock}) {
    if (*text == to_string(kind)) return kind;
  }
  fail("KOLO_WAIT", *text, "one of auto, spin, yield, block");
}

// Names of a launcher's variables; null: it sets none for this.
struct RankVariables {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  Launcher::Kind kind;
};
constexpr RankVariables kOwn = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                Launcher::Kind::kUnknown};
constexpr RankVariables kOfLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", Launcher::Kind::kOpenMpi},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", Launcher::Kind::kMpich},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", Launcher::Kind::kMpich},
    // In a batch script, which is not a rank, the second is not set.
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, Launcher::Kind::kSlurm}};

void read_ranks(const Reader& reader, const RankVariables& variables, Settings& settings) {
  settings.rank = reader.integer(variables.rank, 0);
  settings.size = reader.integer(variables.size, 1);
  settings.local_rank = reader.integer(variables.local_rank, 0);
  if (variables.local_size != nullptr)
    settings.local_size = reader.integer(variables.local_size, 1);
  settings.size_variable = variables.size;
  settings.launcher.kind = variables.kind;
}

void read_ranks(const Reader& reader, Settings& settings) {
  read_ranks(reader, kOwn, settings);
  if (const auto index = reader.text("JOB_COMPLETION_INDEX"); index && !settings.rank) {
    if (!settings.size) return;  // a Job may also have pods that are independent
    settings.rank = reader.integer("JOB_COMPLETION_INDEX", 0);
    settings.launcher.kind = Launcher::Kind::kKubernetes;
  }
  if (settings.rank || settings.size || settings.local_rank || settings.local_size) return;
  for (const RankVariables& variables : kOfLaunchers) {
    // A single process of a launcher may also be an interactive shell in a job.
    if (!reader.text(variables.rank) || reader.integer(variables.size, 1).value_or(1) == 1)
      continue;
    read_ranks(reader, variables, settings);
    // srun --mpi=pmi2 sets the variables of PMI, except this one.
    if (!settings.local_rank) settings.local_rank = reader.integer("SLURM_LOCALID", 0);
    return;
  }
}

std::string joined(const Reader& reader, std::initializer_list<const char*> names) {
  std::string all;
  for (const char* name : names) {
    if (const auto text = reader.text(name)) all += (all.empty() ? "" : " ") + *text;
  }
  return all;
}

void read_launcher(const Reader& reader, Settings& settings) {
  Launcher& launcher = settings.launcher;
  const bool has_agent = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (launcher.kind == Launcher::Kind::kUnknown && settings.rank && has_agent)
    launcher.kind = Launcher::Kind::kTorchrun;
  const std::string torchrun =
      joined(reader, {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"});
  const std::string slurm = joined(reader, {"SLURM_JOB_ID", "SLURM_STEP_ID"});
  // The address of the server tells a job from an earlier one with the same name.
  const std::string open_mpi =
      joined(reader, {"PMIX_NAMESPACE", "OMPI_MCA_orte_local_daemon_uri", "PMIX_SERVER_URI2"});
  launcher.node_list = reader.text("SLURM_STEP_NODELIST").value_or("");
  launcher.nodes =
      static_cast<int>(parse_number(reader.text("SLURM_STEP_NUM_NODES").value_or("")).value_or(0));
  launcher.pmi_descriptor =
      static_cast<int>(parse_number(reader.text("PMI_FD").value_or("")).value_or(-1));
  const auto of_version_4 = reader.text("OMPI_MCA_orte_jobfam_session_dir");
  launcher.folder = of_version_4.value_or(reader.text("PMIX_SERVER_TMPDIR").value_or(""));
  launcher.pmix_prefix = reader.text("PMIX_PREFIX").value_or("");
  if (launcher.kind == Launcher::Kind::kTorchrun) launcher.job = torchrun;
  if (launcher.kind == Launcher::Kind::kSlurm) launcher.job = slurm;
  if (launcher.kind == Launcher::Kind::kOpenMpi) launcher.job = open_mpi;
}

void read_ports(const Reader& reader, Settings& settings) {
  const auto text = reader.text("KOLO_TCP_PORTS");
  if (!text) return;
  const auto dash = text->find('-');
  const auto low = parse_number(text->substr(0, dash));
  const auto high = dash == std::string::npos ? low : parse_number(text->substr(dash + 1));
  if (!low || !high || *low < 1 || *high < *low || *high > 65535) {
    fail("KOLO_TCP_PORTS", *text, "a port or LOW-HIGH, from 1 to 65535");
  }
  settings.tcp_port_low = static_cast<std::uint16_t>(*low);
  settings.tcp_port_high = static_cast<std::uint16_t>(*high);
}

std::string read_host_id(const Reader& reader) {
  const auto text = reader.text("KOLO_HOST_ID");
  if (text && !is_host_id(*text)) {
    fail("KOLO_HOST_ID", *text, "a name of at most 64 visible characters, without blanks");
  }
  return text.value_or("");
}

// A text, checked by `parse`, which throws std::invalid_argument.
std::string read_parsed(const Reader& reader, const char* name, const auto& parse) {
  const std::string text = reader.text(name).value_or("");
  if (text.empty()) return text;
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}='{}': {}", name, text, error.what()));
  }
  return text;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  read_settings([&names](const char* name) -> std::optional<std::string> {
    names.emplace_back(name);
    return std::nullopt;
  });
  return names;
}

}  // namespace

bool is_host_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

std::string_view to_string(WaitKind kind) {
  switch (kind) {
    case WaitKind::kAuto:
      return "auto";
    case WaitKind::kSpin:
      return "spin";
    case WaitKind::kYield:
      return "yield";
    case WaitKind::kBlock:
      return "block";
  }
  return "unknown";
}

namespace {

// "::1" of "[::1]", as an IPv6 address is written in front of a port.
std::string without_brackets(const std::string& host) {
  const bool has_both = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_both ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

Settings read_settings(const Variables& variables) {
  const Reader reader(variables);
  Settings settings;
  read_ranks(reader, settings);
  read_launcher(reader, settings);
  settings.store = reader.text("KOLO_STORE").value_or("");
  settings.master_host = without_brackets(reader.text("MASTER_ADDR").value_or(""));
  settings.master_port =
      static_cast<std::uint16_t>(reader.number("MASTER_PORT", 1, 65535).value_or(0));
  settings.timeout = std::chrono::milliseconds(
      reader.number("KOLO_TIMEOUT_MS", 1, kMostTimeoutMs).value_or(settings.timeout.count()));
  settings.wait = read_wait(reader);
  settings.spin = std::chrono::microseconds(
      reader.number("KOLO_SPIN_US", 0, 60'000'000).value_or(settings.spin.count()));
  settings.transport = reader.text("KOLO_TRANSPORT").value_or("");
  settings.host_id = read_host_id(reader);
  settings.segment_bytes = reader.bytes("KOLO_SEGMENT_BYTES", 64, 1 << 30).value_or(0);
  settings.shape = read_parsed(reader, "KOLO_SHAPE", parse_shape);
  settings.fault = read_parsed(reader, "KOLO_FAULT", parse_faults);
  settings.trace = reader.text("KOLO_TRACE").value_or("");
  settings.tuning = reader.text("KOLO_TUNING").value_or("");
  settings.timeline = reader.text("KOLO_TIMELINE").value_or("");
  settings.shm_single_copy_bytes =
      reader.bytes("KOLO_SHM_SINGLE_COPY", 0, 1 << 30).value_or(settings.shm_single_copy_bytes);
  settings.tcp_host = reader.text("KOLO_TCP_HOST").value_or("");
  settings.tcp_advertise = reader.text("KOLO_TCP_ADVERTISE").value_or("");
  read_ports(reader, settings);
  settings.tcp_congestion = reader.text("KOLO_TCP_CONGESTION").value_or("");
  settings.tcp_buffer_bytes =
      static_cast<int>(reader.bytes("KOLO_TCP_BUFFERS", 4096, 1 << 30).value_or(0));
  settings.tcp_lanes =
      static_cast<int>(reader.number("KOLO_TCP_LANES", 1, kMostTcpLanes).value_or(1));
  settings.hello_timeout =
      std::chrono::milliseconds(reader.number("KOLO_HELLO_TIMEOUT_MS", 1, 3'600'000)
                                    .value_or(settings.hello_timeout.count()));
  settings.cuda_device = reader.integer("KOLO_CUDA_DEVICE", 0);
  settings.ucx_asks_as_told = reader.text("UCX_RNDV_THRESH").has_value();
  settings.ofi_provider = reader.text("KOLO_OFI_PROVIDER").value_or("");
  return settings;
}

Settings read_settings() {
  return read_settings([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

std::vector<UnknownSetting> unknown_settings(std::span<const std::string> variables) {
  std::vector<UnknownSetting> unknown;
  const std::vector<std::string> known = known_names();
  for (const std::string_view variable : variables) {
    const auto end = variable.find('=');
    const auto name = variable.substr(0, end);
    if (!name.starts_with(kPrefix) || name.size() == variable.size()) continue;
    if (end + 1 == variable.size()) continue;  // empty counts as not set
    if (std::ranges::find(known, name) != known.end()) continue;
    if (std::ranges::find(kReadElsewhere, name) != kReadElsewhere.end()) continue;
    const std::string beginning = fmt::format("{}_", name);
    const auto longer = std::ranges::find_if(
        known, [&](const std::string& one) { return one.starts_with(beginning); });
    unknown.push_back({std::string(name), longer != known.end()
                                              ? *longer
                                              : nearest_word(name, known, kPrefix.size())});
  }
  std::ranges::sort(unknown, {}, &UnknownSetting::name);
  return unknown;
}

std::vector<UnknownSetting> unknown_settings() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with(kPrefix)) variables.emplace_back(*variable);
  }
  return variables.empty() ? std::vector<UnknownSetting>{} : unknown_settings(variables);
}

std::string describe(const UnknownSetting& unknown) {
  return fmt::format(
      "{} is not a setting of kolo, and nothing reads it{}", unknown.name,
      unknown.meant.empty() ? std::string() : fmt::format("; did you mean {}?", unknown.meant));
}

bool is_in_environment(const char* name) { return std::getenv(name) != nullptr; }

void set_setting(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace kolo::inline v0
