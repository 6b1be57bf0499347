#include "model/text/bpe.h"

#include <algorithm>
#include <queue>

namespace rematch {
namespace {

// Up to this length a scan for the lowest rank is faster than a heap.
constexpr size_t kShortWordBytes = 48;

uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<TokenId, 256>& byte_ids,
                                 const std::vector<Merge>& merges)
    : byte_ids_(byte_ids) {
  rules_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    rules_[pair_key(merges[rank].left, merges[rank].right)] = {static_cast<int>(rank),
                                                               merges[rank].merged};
  }
}

const BytePairEncoder::Rule* BytePairEncoder::find_rule(TokenId left, TokenId right) const {
  const auto found = rules_.find(pair_key(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

void BytePairEncoder::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  if (word.size() <= kShortWordBytes) {
    encode_short(word, out);
  } else {
    encode_long(word, out);
  }
}

void BytePairEncoder::encode_short(std::string_view word, std::vector<TokenId>& out) const {
  std::array<TokenId, kShortWordBytes> ids;
  std::array<const Rule*, kShortWordBytes> pair_rules;  // rule of (i, i+1), nullptr = none
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) ids[i] = byte_ids_[static_cast<unsigned char>(word[i])];
  for (size_t i = 0; i + 1 < count; ++i) pair_rules[i] = find_rule(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; ++i) {
      if (pair_rules[i] != nullptr &&
          (best == count || pair_rules[i]->rank < pair_rules[best]->rank))
        best = i;
    }
    if (best == count) break;
    ids[best] = pair_rules[best]->merged;
    std::copy(ids.begin() + best + 2, ids.begin() + count, ids.begin() + best + 1);
    if (best + 2 < count)
      std::copy(pair_rules.begin() + best + 2, pair_rules.begin() + count - 1,
                pair_rules.begin() + best + 1);
    --count;
    if (best > 0) pair_rules[best - 1] = find_rule(ids[best - 1], ids[best]);
    if (best + 1 < count) pair_rules[best] = find_rule(ids[best], ids[best + 1]);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + count);
}

void BytePairEncoder::encode_long(std::string_view word, std::vector<TokenId>& out) const {
  // The symbols are a linked list over the bytes, the heap has candidate merges. A candidate is
  // skipped if its pair has changed.
  struct Symbol {
    TokenId id;
    int64_t previous;
    int64_t next;
  };
  struct Candidate {
    int rank;
    int64_t position;
    TokenId left;
    TokenId right;
    TokenId merged;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  const int64_t size = std::ssize(word);
  std::vector<Symbol> symbols(word.size());
  for (int64_t i = 0; i < size; ++i) {
    symbols[i] = {byte_ids_[static_cast<unsigned char>(word[i])], i - 1, i + 1 < size ? i + 1 : -1};
  }
  std::vector<Candidate> heap;
  heap.reserve(word.size());
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(heap));
  const auto propose = [&](int64_t position) {
    if (position < 0 || symbols[position].next < 0) return;
    const int left = symbols[position].id;
    const int right = symbols[symbols[position].next].id;
    if (const Rule* found = find_rule(left, right))
      queue.push({found->rank, position, left, right, found->merged});
  };
  for (int64_t i = 0; i + 1 < size; ++i) propose(i);
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    Symbol& symbol = symbols[candidate.position];
    if (symbol.id != candidate.left || symbol.next < 0) continue;
    Symbol& neighbour = symbols[symbol.next];
    if (neighbour.id != candidate.right) continue;
    symbol.id = candidate.merged;
    neighbour.id = -1;  // removed: matches no candidate
    symbol.next = neighbour.next;
    if (symbol.next >= 0) symbols[symbol.next].previous = candidate.position;
    propose(symbol.previous);
    propose(candidate.position);
  }
  for (int64_t i = 0; i >= 0; i = symbols[i].next) out.push_back(symbols[i].id);
}

}  // namespace rematch
