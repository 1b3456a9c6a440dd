# The folder also selects the architecture: cpp/cpu/x86 or cpp/cpu/arm64. Each file there is
# compiled for one instruction set and selected at run time, so one build runs on every CPU.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(isa_dir cpp/cpu/x86)
  set(isa_flags_avx2 -mavx2 -mfma)
  set(isa_flags_avx_vnni -mavx2 -mavxvnni)
  set(isa_flags_avx512 -mavx512f)
  set(isa_flags_avx512_fp16 -mavx512f -mavx512bw -mavx512vl -mavx512fp16)
  set(isa_flags_avx512_neural -mavx512f -mavx512bw -mavx512vnni -mavx512bf16)
  set(isa_flags_amx -mamx-tile -mamx-bf16 -mamx-int8)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(isa_dir cpp/cpu/arm64)
  set(isa_flags_fp16 -march=armv8.2-a+fp16)
  set(isa_flags_dot -march=armv8.2-a+dotprod)
  set(isa_flags_neural -march=armv8.6-a+bf16+i8mm)
  set(isa_flags_sve -march=armv8.2-a+sve)
  set(isa_flags_sve_neural -march=armv8.2-a+sve+bf16+i8mm)
else()
  message(FATAL_ERROR "nnbt has kernels for x86-64 and arm64, not for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

file(GLOB isa_sources CONFIGURE_DEPENDS ${isa_dir}/*.cpp)
if(isa_dir STREQUAL cpp/cpu/x86)
  # GCC 11 (Ubuntu 22.04), the oldest compiler in use, lacks this instruction set: its row is
  # omitted.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mavx512fp16 NNBT_AVX512_FP16)
  if(NOT NNBT_AVX512_FP16)
    list(FILTER isa_sources EXCLUDE REGEX avx512_fp16)
    list(APPEND left_out NNBT_WITHOUT_AVX512_FP16)
  endif()
else()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS "${isa_flags_sve_neural}")
  check_cxx_source_compiles("
    #include <arm_sve.h>
    svfloat32_t f(svfloat32_t sum, svbfloat16_t x) { return svbfmmla(sum, x, x); }
    int main() {}" NNBT_SVE)
  unset(CMAKE_REQUIRED_FLAGS)
  check_cxx_source_compiles("
    asm(\".arch_extension sme\");
    asm(\"smstart\");
    int main() { asm volatile(\"\" : : : \"z0\", \"p0\"); }" NNBT_SME)
  foreach(extension SVE SME)
    if(NOT NNBT_${extension})
      message(WARNING "The compiler or assembler lacks ${extension}: its peak chains are omitted.")
      string(TOLOWER ${extension} file)
      list(FILTER isa_sources EXCLUDE REGEX "/${file}[^/]*$")
      list(APPEND left_out NNBT_WITHOUT_${extension})
    endif()
  endforeach()
endif()
foreach(source ${isa_sources})
  get_filename_component(isa ${source} NAME_WE)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${isa_flags_${isa}}")
endforeach()
set_source_files_properties(${isa_dir}/tables.cpp PROPERTIES COMPILE_DEFINITIONS "${left_out}")
