# The helper process (objc/helper): variants that can abort the process run in one of their own, and
# only a main executable can have the entitlement for Neural Engine counters.
file(STRINGS ${PROJECT_SOURCE_DIR}/pyproject.toml version_line REGEX "^version = " LIMIT_COUNT 1)
string(REGEX MATCH "[0-9][^\"]*" nnbt_version "${version_line}")

# `options` are compile options for Objective-C++ sources; further arguments are sources.
function(nnbt_add_helper name options)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/objc/helper/*.cpp
    ${PROJECT_SOURCE_DIR}/objc/helper/*.mm)
  add_executable(${name} ${sources} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/objc)
  target_compile_definitions(${name} PRIVATE NNBT_VERSION="${nnbt_version}")
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:OBJCXX>:${options}>")
  target_link_libraries(${name} PRIVATE nnbt_core)
endfunction()
