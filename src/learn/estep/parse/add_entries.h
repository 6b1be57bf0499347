#pragma once
#include <cstddef>
#include <utility>

#include "base/flow/parsed.h"
#include "learn/estep/parse/json_reader.h"
#include "learn/estep/parse/token_bytes.h"

namespace rematch {

/// Fills in status, objects and dropped_invalid of a rollout from its JSON.
/// @param read_entry  takes the index of a complete entry; returns std::optional<ParsedObject>,
/// nullopt for an invalid one
/// @param start  offset of the answer in the response, after a think block
template <typename ReadEntry>
void add_entries(const JsonDocument& document, const TokenBytes& tokens, ParsedRollout& parsed,
                 ReadEntry read_entry, size_t start = 0) {
  parsed.status = document.status;
  int previous_end = start == 0 ? 0 : tokens.overlapping(start - 1, start).end;
  for (size_t i = 0; i < document.top.items.size(); ++i) {
    const size_t last_byte = document.top.items[i].end - 1;
    const TokenSpan entry{previous_end, tokens.overlapping(last_byte, last_byte + 1).end};
    previous_end = entry.end;
    if (auto object = read_entry(i)) {
      object->entry = entry;
      parsed.objects.push_back(std::move(*object));
    } else {
      ++parsed.dropped_invalid;
    }
  }
  if (document.entry_open) ++parsed.dropped_invalid;
}

}  // namespace rematch
