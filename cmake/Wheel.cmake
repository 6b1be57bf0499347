# Contents of the wheel (scripts/wheel, pyproject.toml): the program and the vLLM plug-in, in the package rematch, next to the modules
# of src/python. libtorch is that of the torch package next to it; the other libraries are bundled afterwards by auditwheel.
if(NOT TARGET rematch)
  return()
endif()
foreach(target rematch rematch_vllm)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib")
  endif()
endforeach()
install(TARGETS rematch RUNTIME DESTINATION bin COMPONENT wheel)
if(TARGET rematch_vllm)
  install(TARGETS rematch_vllm LIBRARY DESTINATION lib COMPONENT wheel)
endif()
