#pragma once
#include <cstddef>
#include <utility>

#include "estep/parse/json_reader.h"
#include "estep/parse/token_bytes.h"
#include "flow/parsed.h"

namespace rematch {

/// Fills in status, objects and dropped_invalid of a rollout from its JSON.
/// @param read_entry  takes the index of a complete entry; returns std::optional<ParsedObject>,
/// nullopt for an invalid one
template <typename ReadEntry>
void add_entries(const JsonDocument& document, const TokenBytes& tokens, ParsedRollout& parsed,
                 ReadEntry read_entry) {
  parsed.status = document.status;
  int previous_end = 0;
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
