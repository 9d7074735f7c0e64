// Clauses for stores of a program's own: kolo's stores keep them, and broken stores are found.
#include "transports/conformance/store_clauses.h"

#include <memory>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"
#include "test/transports/store/store_table.h"

namespace kolo::test {
namespace {

using conformance::failed_store_clauses;

// Another fault in each: which clause finds it.
class DropsEmptyValues final : public ForwardingStore {
 public:
  std::optional<std::string> try_get(std::string_view key) override {
    auto value = ForwardingStore::try_get(key);
    return value && value->empty() ? std::nullopt : value;
  }
};

class KeepsTheLastFailure final : public ForwardingStore {
 public:
  std::string post_failure(std::string_view text) override {
    ForwardingStore::post_failure(text);
    return std::string(text);
  }
};

class NeverRetires final : public ForwardingStore {
 public:
  void retire(std::string_view, int) override {}
};

// What the clauses say of such a store, which all ranks of a job share.
template <typename Broken>
std::vector<std::string> clauses_of() {
  std::shared_ptr<Store> store;
  return failed_store_clauses([&] { return store; }, [&] { store = std::make_shared<Broken>(); });
}

}  // namespace

TEST_CASE("kolo's stores keep the clauses for stores") {
  for (const StoreRow& row : store_table()) {
    DYNAMIC_SECTION(row.name) {
      std::unique_ptr<StoreJob> job;
      CHECK(failed_store_clauses([&] { return job->open(); }, [&] { job = row.make(); }) ==
            std::vector<std::string>());
    }
  }
}

TEST_CASE("the clauses for stores find the fault of a broken store") {
  CHECK(clauses_of<DropsEmptyValues>() ==
        std::vector<std::string>{"a value reaches other ranks unchanged: after an empty value was "
                                 "set, try_get() gave no value"});
  CHECK(clauses_of<KeepsTheLastFailure>() ==
        std::vector<std::string>{"the first failure wins and ends every wait: a second failure "
                                 "took the place of the first: 'the second'"});
  CHECK(clauses_of<NeverRetires>() ==
        std::vector<std::string>{"the keys of a prefix are removed once all users have retired it: "
                                 "a key was not removed after all its users had retired it"});
}

}  // namespace kolo::test
