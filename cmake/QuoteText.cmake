# Turns a text file into C++ string literals, one a line:
# cmake -DINPUT=TEXT -DOUTPUT=INC -P QuoteText.cmake
file(READ ${INPUT} _text)
string(REPLACE "\\" "\\\\" _text "${_text}")
string(REPLACE "\"" "\\\"" _text "${_text}")
string(REPLACE "\n" "\\n\"\n\"" _text "${_text}")
file(WRITE ${OUTPUT} "\"${_text}\"\n")
