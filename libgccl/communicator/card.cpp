#include "libgccl/communicator/card.hpp"

#include <cstdio>
#include <cstring>

namespace gccl {
namespace {

// Each of these makes plans or adds messages, so a rank that has another one waits for what nobody sends.
constexpr const char* kNames[Card::kSettings] = {"GCCL_ALGORITHM", "GCCL_CHECK",
                                                 "GCCL_BACKENDS (or GCCL_Config.backends)"};

void put(Card::Value* value, const std::string& text) {
  value->digest = text.size();
  for (const char c : text) value->digest = (value->digest ^ std::uint8_t(c)) * 0x9e3779b97f4a7c15;
  const bool fits = text.size() < sizeof value->text;
  std::snprintf(value->text, sizeof value->text, "%.*s%s", fits ? int(text.size()) : int(sizeof value->text) - 4,
                text.c_str(), fits ? "" : "...");
}

std::string quoted(const Card::Value& v) {
  return v.text[0] ? std::string("\"").append(v.text).append("\"") : "nothing";
}

}  // namespace

void Card::end_texts() {
  host[sizeof host - 1] = text[sizeof text - 1] = 0;
  for (Value& v : settings) v.text[sizeof v.text - 1] = 0;
}

void Card::set_error(const Status& why) {
  code = why.code();
  std::snprintf(text, sizeof text, "%s", why.text().c_str());
}

void Card::set_settings(const Overrides& algorithms, bool check, const std::string& backends) {
  put(&settings[0], algorithms.text());
  put(&settings[1], check ? "1" : "0");
  put(&settings[2], backends);
}

Status compare(const std::vector<Card>& cards, Rank me) {
  for (Rank r = 0; r < cards.size(); ++r)
    if (cards[r].version != cards[me].version)
      return Status::error("rank " + std::to_string(r) + " runs GCCL " + std::to_string(cards[r].version) + ", rank " +
                               std::to_string(me) + " runs " + std::to_string(cards[me].version) +
                               ": all ranks need the same",
                           GCCL_ERR_INVALID_USAGE);
  for (Rank r = 0; r < cards.size(); ++r)
    if (cards[r].code)
      return Status::error("rank " + std::to_string(r) + " could not start: " + cards[r].text, cards[r].code);
  for (std::size_t i = 0; i < Card::kSettings; ++i)
    for (Rank r = 1; r < cards.size(); ++r) {
      const Card::Value &first = cards[0].settings[i], &other = cards[r].settings[i];
      if (first.digest == other.digest && std::memcmp(first.text, other.text, sizeof first.text) == 0) continue;
      return Status::error(std::string(kNames[i]) + " differs: rank 0 has " + quoted(first) + ", rank " +
                               std::to_string(r) + " has " + quoted(other) + "; set the same on every rank",
                           GCCL_ERR_INVALID_USAGE);
    }
  return {};
}

}  // namespace gccl
