"""Prints the tables of src/model/text/unicode_additions.h and src/model/text/normalize.cc.

They say where the Unicode tables of Hugging Face tokenizers differ from those that Rematch is built
on:
  1. general categories: Oniguruma's in the tokenizers wheel against PCRE2 10.42 (Unicode 14);
  2. normalisation: the wheel's NFC (Unicode 9) against utf8proc 2.8 (Unicode 15).
Needs g++, libpcre2-dev and libutf8proc-dev. Run from the root of the checkout: .venv/bin/python
dev/goldens/text_unicode_additions.py
"""

import os
import subprocess
import tempfile

from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
)
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
SEPARATOR = "\x01"

# mode "category": for each line (a category) the code points that \p{…} matches; mode "nfc":
# stdin's texts, normalised.
PROGRAM = r"""
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
int main(int argc, char** argv) {
  std::string mode = argv[1];
  if (mode == "nfc") {
    std::string text((std::istreambuf_iterator<char>(std::cin)), {});
    size_t begin = 0;
    while (begin < text.size()) {
      size_t end = text.find('\x01', begin);
      utf8proc_uint8_t* out = nullptr;
      auto size = utf8proc_map((const utf8proc_uint8_t*)text.data() + begin,
                               (utf8proc_ssize_t)(end - begin), &out,
                               (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      std::cout.write((const char*)out, size) << '\x01';
      std::free(out);
      begin = end + 1;
    }
    return 0;
  }
  for (int i = 2; i < argc; ++i) {
    int error; size_t offset;
    std::string pattern = "\\p{" + std::string(argv[i]) + "}";
    auto* code = pcre2_compile((PCRE2_SPTR)pattern.c_str(), PCRE2_ZERO_TERMINATED,
                               PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    auto* data = pcre2_match_data_create(1, nullptr);
    for (int c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      utf8proc_uint8_t bytes[4];
      auto size = utf8proc_encode_char(c, bytes);
      if (pcre2_match(code, bytes, size, 0, PCRE2_NO_UTF_CHECK, data, nullptr) > 0)
        std::printf("%s %X\n", argv[i], c);
    }
  }
}
"""


def ours(program):
    category = dict.fromkeys(CODE_POINTS, "Cn")
    for line in subprocess.run(
        [program, "category", *CATEGORIES], capture_output=True, text=True, check=True
    ).stdout.split("\n"):
        if line:
            name, code = line.split()
            category[int(code, 16)] = name
    return category


def theirs():
    category = dict.fromkeys(CODE_POINTS, "Cn")
    for name in CATEGORIES:
        between = "a" if name == "Cc" else "\x00"
        splitter = pre_tokenizers.Split(Regex("\\p{%s}" % name), "isolated")
        for i in range(0, len(CODE_POINTS), 20000):
            text = "".join(between + chr(c) for c in CODE_POINTS[i : i + 20000])
            for piece, _ in splitter.pre_tokenize_str(text):
                if len(piece) == 1 and piece != between:
                    category[ord(piece)] = name
    category[0] = "Cc"
    return category


def runs(entries):
    out = []
    for code, name in entries:
        if out and out[-1][1] == code - 1 and out[-1][2] == name:
            out[-1][1] = code
        else:
            out.append([code, code, name])
    return out


def probes(code):
    # A mark that only one side knows moves, or lets others move, around marks of other classes.
    x = chr(code)
    return [
        x,
        "a\u0301" + x + "\u0316",
        "a\u0315" + x + "\u0301",
        "a" + x + "\u0301\u05b0\u0345\u0334",
    ]


def normalisation_differences(program):
    nfc = normalizers.NFC()
    codes = [c for c in CODE_POINTS if c != 1]
    texts = [p for c in codes for p in probes(c)]
    done = subprocess.run(
        [program, "nfc"],
        input="".join(t + SEPARATOR for t in texts).encode(),
        capture_output=True,
        check=True,
    )
    results = done.stdout.decode().split(SEPARATOR)
    different = {
        codes[i // 4] for i, text in enumerate(texts) if nfc.normalize_str(text) != results[i]
    }
    return sorted(different | {0x11930, 0x11938})  # the one composition younger than Unicode 9


def main():
    with tempfile.TemporaryDirectory() as directory:
        source, program = os.path.join(directory, "tables.cc"), os.path.join(directory, "tables")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run(["g++", "-O1", "-o", program, source, "-lpcre2-8", "-lutf8proc"], check=True)
        mine, reference = ours(program), theirs()
        print("// src/model/text/unicode_additions.h")
        for first, last, name in runs(
            (c, reference[c]) for c in CODE_POINTS if mine[c] != reference[c]
        ):
            print(f'    {{0x{first:X}, 0x{last:X}, "{name}"}},')
        print("// src/model/text/normalize.cc")
        for first, last, _ in runs((c, "") for c in normalisation_differences(program)):
            print(f"    {{0x{first:X}, 0x{last:X}}},")


if __name__ == "__main__":
    main()
