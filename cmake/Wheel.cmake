# Contents of the wheel (scripts/wheel, pyproject.toml): the program, the vLLM plug-in and, where it
# is built, the NCCL library, in the package rematch, next to the modules of src/tools/python.
# libtorch is that of the torch package next to it; the other libraries are bundled afterwards by
# auditwheel.
if(NOT TARGET rematch)
  return()
endif()
foreach(target rematch rematch_vllm rematch_nccl)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib")
  endif()
endforeach()
install(TARGETS rematch RUNTIME DESTINATION bin COMPONENT wheel)
if(TARGET rematch_vllm)
  install(TARGETS rematch_vllm LIBRARY DESTINATION lib COMPONENT wheel)
endif()
if(TARGET rematch_nccl)
  install(TARGETS rematch_nccl LIBRARY DESTINATION lib COMPONENT wheel)
endif()
