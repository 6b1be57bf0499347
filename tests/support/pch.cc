// Empty: rematch_test_pch needs a source so that its precompiled header is built.
