#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "train/data/dataset.h"
#include "train/fetch/fetch.h"
#include "train/flags/flag_parser.h"
#include "train/flags/flag_values.h"
#include "train/options.h"

namespace kolo::train {
namespace {

constexpr std::array<std::string_view, 4> kProtocols{"http://", "https://", "ftp://", "file://"};

std::string why_no_url(const std::string& text) {
  const auto begins = [&](std::string_view protocol) { return text.starts_with(protocol); };
  if (std::ranges::any_of(kProtocols, begins)) return "";
  return fmt::format("expected a URL that begins with one of {}, got '{}'",
                     fmt::join(kProtocols, ", "), text);
}

std::vector<std::string> names_of_datasets() {
  std::vector<std::string> names;
  for (const RemoteDataset& dataset : remote_datasets()) names.push_back(dataset.name);
  return names;
}

}  // namespace

int run_fetch(const std::vector<std::string>& arguments) {
  std::string name, directory, from;
  CLI::App app("Downloads the official files of a data set with curl or wget, and checks them",
               "kolo-train fetch");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("DATASET", name, fmt::format("{}", fmt::join(names_of_datasets(), ", ")))
      ->check(one_of("data set", names_of_datasets()))
      ->required();
  app.add_option("DIR", directory, "folder for the files; made if it does not exist")
      ->check(nonempty_text("a folder"))
      ->required();
  app.add_option("--from", from, "URL of a folder with copies of the files [the official one]")
      ->check(why_no_url);
  if (const std::string help = parse_flags(app, arguments); !help.empty()) {
    std::fputs(help.c_str(), stdout);
    return 0;
  }
  RemoteDataset dataset = *std::ranges::find(remote_datasets(), name, &RemoteDataset::name);
  if (!from.empty()) dataset.url = from.ends_with('/') ? from : from + '/';
  try {
    fetch(dataset, directory);
  } catch (const FetchError& error) {
    fmt::print(stderr, "kolo-train: {}\n", error.what());
    return error.exit_code();
  }
  fmt::print(stderr, "fetch: complete; use it with --dataset {}:{}\n", name, directory);
  return 0;
}

}  // namespace kolo::train
