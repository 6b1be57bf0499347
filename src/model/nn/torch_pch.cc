// Carries the precompiled header torch_pch.h; the build needs one source file for it.
