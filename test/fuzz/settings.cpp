// Fuzzer of the settings: environment variables as lines of NAME=VALUE, parsed by read_settings(),
// and the store's URL.
#include "transports/settings.h"

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "test/fuzz/input.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/shape.h"
#include "transports/store/url.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

std::map<std::string, std::string> variables_of(std::string_view text) {
  std::map<std::string, std::string> variables;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
  }
  return variables;
}

// The text of a parsed shape must parse to the same shape.
void check_shape_text(const std::string& text) {
  const Shape shape = parse_shape(text);
  require(parse_shape(shape.text).text == shape.text, "a shape's text says the shape");
  const ShapedPath path = shape.path(0, 1, {});
  require(path.delay.count() >= 0 && path.jitter.count() >= 0, "no time runs backwards");
  try {
    check_shape(shape, 2);
  } catch (const std::invalid_argument&) {
  }
}

void check_fault_text(const std::string& text) {
  const FaultPlan plan = parse_faults(text);
  require(plan.text == text && !plan.faults.empty(), "a plan has its text");
}

void check(const Settings& settings) {
  require(!settings.rank || *settings.rank >= 0, "a rank is from 0");
  require(!settings.size || *settings.size >= 1, "a size is from 1");
  require(settings.tcp_port_low <= settings.tcp_port_high, "ports go upwards");
  require(settings.hello_timeout.count() > 0, "an unknown client has some time");
  if (!settings.shape.empty()) check_shape_text(settings.shape);
  if (!settings.fault.empty()) check_fault_text(settings.fault);
  if (const auto url = parse_store_url(settings.store))
    require(url->path.empty() ? !url->host.empty() && url->port != 0 : url->port == 0,
            "a store is at a port or in a file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto variables = variables_of({reinterpret_cast<const char*>(data), size});
  try {
    check(read_settings([&variables](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    }));
  } catch (const std::invalid_argument& error) {
    require(std::string_view(error.what()).find("='") != std::string_view::npos,
            "a refusal names the variable and its value");
  }
  return 0;
}
