#include "transports/conformance/program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "transports/conformance/arguments.h"
#include "transports/conformance/child_process.h"
#include "transports/conformance/rank_process.h"
#include "transports/conformance/results.h"
#include "transports/launch/launch.h"

namespace kolo::inline v0::conformance {

namespace {

// Exit codes of a process that runs one clause.
constexpr int kProved = 0;
constexpr int kDisproved = 1;

void say(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  throw std::runtime_error(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

std::string how_it_ended(int status, const std::string& output) {
  if (WIFSIGNALED(status)) {
    return output + fmt::format("it was ended by signal {} ({})", WTERMSIG(status),
                                strsignal(WTERMSIG(status)));
  }
  return output.empty() ? fmt::format("it ended with exit code {}", WEXITSTATUS(status)) : output;
}

// --- in the process of one clause ---

int prove_here(const Arguments& arguments) {
  if (!arguments.is_probe && (arguments.clauses.size() != 1 || arguments.transports.size() != 1)) {
    throw std::invalid_argument(fmt::format(
        "--here proves one clause over one transport, but the words match {} and {}: --list shows "
        "the clauses",
        arguments.clauses.size(), arguments.transports.size()));
  }
  end_with_parent();
  try {
    Subject subject = subject_named(arguments.transports.at(0), {own_program(), "--rank"});
    if (arguments.is_probe) {
      const Features offers = probe(subject);
      say(fmt::format("{}{}{}", offers.answers ? 'a' : '-', offers.sleep ? 's' : '-',
                      offers.processes ? 'p' : '-'));
      return kProved;
    }
    // An earlier process (--probe) has found out what the transport offers.
    subject.offers = {true, true, subject.offers.processes};
    const Clause& clause = clause_named(arguments.clauses.at(0));
    if (clause.need == Need::kNothing) subject.offers = probe(subject);
    clause.prove(subject);
    say("passed\n");
    return kProved;
  } catch (const std::exception& error) {
    say(fmt::format("{}\n", error.what()));
    return kDisproved;
  }
}

// --- in the main process ---

class Prover {
 public:
  Prover(const Arguments& arguments, std::string transport)
      : arguments_(arguments), transport_(std::move(transport)) {}

  Results prove_all() {
    Results results{transport_, {}};
    say(fmt::format("{}\n", transport_));
    const Result probed = run({"--probe"});
    const std::string& offers = probed.why;
    if (probed.outcome == Outcome::kPassed && offers.size() == 3)
      offers_ = {offers[0] == 'a', offers[1] == 's', offers[2] == 'p'};
    const bool is_made = probed.outcome == Outcome::kPassed;
    if (!is_made) say(fmt::format("  two ranks cannot make it: {}\n", probed.why));
    for (const Clause& clause : clauses()) {
      if (!is_asked(clause)) continue;
      results.results.push_back(prove(clause, probed));
      if (is_made) say(row(results.results.back()));
    }
    say(fmt::format("  {} passed, {} failed, {} not offered\n", results.count(Outcome::kPassed),
                    results.count(Outcome::kFailed), results.count(Outcome::kNotOffered)));
    return results;
  }

 private:
  bool is_asked(const Clause& clause) const {
    return arguments_.clauses.empty() ||
           std::ranges::find(arguments_.clauses, clause.text) != arguments_.clauses.end();
  }

  // If two ranks cannot even create the transport, every clause fails with the reason of the one
  // probe.
  Result prove(const Clause& clause, const Result& probed) const {
    Result result;
    if (probed.outcome != Outcome::kPassed) {
      result.outcome = Outcome::kFailed;
      result.why = "two ranks cannot make it: " + probed.why;
    } else if (!clause.is_for(offers_)) {
      result.outcome = Outcome::kNotOffered;
    } else {
      result = run({"--clause", std::string(clause.text)});
      if (result.outcome == Outcome::kPassed) result.why.clear();
    }
    result.clause = &clause;
    return result;
  }

  // `why` is the output of the process.
  Result run(std::vector<std::string> words) const {
    std::vector<std::string> command = {own_program(), "--transport", transport_, "--here"};
    command.insert(command.end(), words.begin(), words.end());
    Result result;
    const auto began = Clock::now();
    Child child(command, Child::Output::kRead);
    const bool has_ended = child.read_output(result.why, began + arguments_.limit);
    if (!has_ended) child.kill();
    const int status = child.wait();
    result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    if (!has_ended) {
      result.outcome = Outcome::kFailed;
      result.why = fmt::format("it had not ended after {} s (--limit)", arguments_.limit.count());
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != kProved) {
      result.outcome = Outcome::kFailed;
      result.why = how_it_ended(status, result.why);
    }
    return result;
  }

  const Arguments& arguments_;
  const std::string transport_;
  Features offers_;
};

// Reports once, before all clauses, why the transport cannot be used.
void require_usable(const std::string& transport) {
  const std::string name = resolve_transport(transport);
  const std::string why = why_unusable(name);
  if (!why.empty()) throw std::runtime_error(fmt::format("{} cannot be used here: {}", name, why));
}

int prove(const Arguments& arguments) {
  std::vector<Results> all;
  for (const std::string& left_out : arguments.left_out) say(left_out + "\n");
  for (const std::string& transport : arguments.transports) require_usable(transport);
  for (const std::string& transport : arguments.transports)
    all.push_back(Prover(arguments, transport).prove_all());
  if (!arguments.markdown.empty()) write_markdown(arguments.markdown, all);
  const bool has_failed = std::ranges::any_of(
      all, [](const Results& results) { return results.count(Outcome::kFailed) > 0; });
  return has_failed ? 1 : 0;
}

int list() {
  for (const Clause& clause : clauses())
    say(fmt::format("{:<10}  {}\n", clause.group, clause.text));
  return 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  open_standard_descriptors();
  try {
    const Arguments arguments = parse(argc, argv);
    if (arguments.is_help) return say(usage()), 0;
    if (arguments.is_list) return list();
    if (!arguments.rank.empty()) return be_rank(arguments.rank);
    return arguments.is_here ? prove_here(arguments) : prove(arguments);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "kolo-conformance: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kolo-conformance: %s\n", error.what());
    return 1;
  }
}

}  // namespace kolo::inline v0::conformance
