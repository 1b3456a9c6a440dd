# Linux, for tests only: the sources in objc/ with ARC on GNUstep, against doubles of Metal and
# MPSGraph that compute real convolutions. Requires clang 19 or newer, libgnustep-base-dev and GCC's
# libobjc (.ci/apple installs them); other sources use the default compiler.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(NOT CMAKE_OBJCXX_COMPILER)
  find_program(clangxx NAMES clang++-22 clang++-21 clang++-20 clang++-19 REQUIRED)
  set(CMAKE_OBJCXX_COMPILER ${clangxx})
  string(REPLACE "clang++" "clang" CMAKE_OBJC_COMPILER ${clangxx})
endif()
enable_language(OBJC OBJCXX)
set(CMAKE_OBJCXX_STANDARD 20)

# GCC's Objective-C headers and library are next to its compiler, where clang does not look.
find_program(gcc NAMES gcc-12 gcc REQUIRED)
execute_process(COMMAND ${gcc} -print-libgcc-file-name OUTPUT_VARIABLE libgcc
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(gcc_dir ${libgcc} DIRECTORY)

set(gnustep -fblocks -fconstant-string-class=NSConstantString -fexceptions -fobjc-exceptions
  -fvisibility=hidden -F${here}/sdk/Frameworks -I${here}/linux/include -isystem/usr/include/GNUstep
  -isystem${gcc_dir}/include -D_NATIVE_OBJC_EXCEPTIONS=1 -DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1
  -DGNU_RUNTIME=1 -DGNUSTEP_RUNTIME=1)
set(with_arc ${gnustep} -fobjc-runtime=objfw-0.8 -fobjc-arc -fobjc-arc-exceptions -Wall -Wextra
  -Wshadow)

# Doubles cannot use ARC: classes can be implemented only in GCC's own ABI.
add_library(apple_doubles OBJECT ${here}/doubles/metal.mm ${here}/doubles/mpsgraph.mm
  ${here}/doubles/executable.mm ${here}/doubles/graph_state.cpp ${here}/doubles/package_files.cpp
  ${here}/doubles/sysctl.cpp ${here}/doubles/registry.mm ${here}/doubles/surface.mm
  ${here}/doubles/ane_script.cpp ${here}/linux/runtime.m)
add_library(ane_doubles OBJECT ${here}/doubles/ane_client.mm ${here}/doubles/ane_model.mm
  ${here}/doubles/ane_objects.mm ${here}/doubles/ane_layout.cpp)
target_include_directories(apple_doubles PRIVATE ${here}/linux/system)
target_include_directories(nnbt_core PRIVATE ${here}/linux/system)
foreach(doubles apple_doubles ane_doubles)
  target_compile_options(${doubles} PRIVATE
    "$<$<COMPILE_LANGUAGE:OBJC,OBJCXX>:${gnustep};-fobjc-runtime=gcc;-Wno-everything>")
endforeach()
target_include_directories(ane_doubles PRIVATE ${here}/linux/system)
# _Float16 and hidden symbols require the same compiler for the C++ part.
set_source_files_properties(${here}/doubles/graph_state.cpp ${here}/doubles/package_files.cpp
  ${here}/doubles/sysctl.cpp ${here}/doubles/ane_script.cpp
  ${here}/doubles/ane_layout.cpp
  PROPERTIES LANGUAGE OBJCXX COMPILE_OPTIONS "-xc++;-std=c++20")

file(GLOB objc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/objc/*.mm
  ${PROJECT_SOURCE_DIR}/objc/macos/*.mm)
target_sources(nnbt_core PRIVATE ${objc_sources})
target_include_directories(nnbt_core PRIVATE ${PROJECT_SOURCE_DIR}/objc)
target_compile_options(nnbt_core PRIVATE "$<$<COMPILE_LANGUAGE:OBJCXX>:${with_arc}>")
target_link_libraries(nnbt_core PUBLIC -L${gcc_dir} gnustep-base objc)

if(TARGET _native)
  target_sources(_native PRIVATE $<TARGET_OBJECTS:apple_doubles>)
endif()
include(cmake/helper.cmake)
nnbt_add_helper(nnbt_helper "${with_arc}" $<TARGET_OBJECTS:apple_doubles>
  $<TARGET_OBJECTS:ane_doubles>)
# dlsym must find the doubles of C functions in the executable.
set_target_properties(nnbt_helper PROPERTIES ENABLE_EXPORTS ON)
# A system whose AppleNeuralEngine framework has none of the classes.
nnbt_add_helper(nnbt_helper_without_ane "${with_arc}" $<TARGET_OBJECTS:apple_doubles>)

add_executable(nnbt_doubles_driver ${here}/driver.cpp objc/ios/rows.cpp objc/swift/nnbt_conv.cpp
  $<TARGET_OBJECTS:apple_doubles> $<TARGET_OBJECTS:ane_doubles>)
target_include_directories(nnbt_doubles_driver PRIVATE ${PROJECT_SOURCE_DIR}/objc)
target_link_libraries(nnbt_doubles_driver PRIVATE nnbt_core)

# What the power probe reads: libraries that are opened by Apple's paths (doubles/dlopen.cpp), and
# functions of Darwin's kernel. Part of every program that contains the product.
add_library(double_ioreport SHARED ${here}/doubles/ioreport.mm)
add_library(double_empty SHARED ${here}/doubles/empty.cpp)
target_compile_options(double_ioreport PRIVATE ${gnustep} -fobjc-runtime=gcc -Wno-everything)
target_link_libraries(double_ioreport PRIVATE -L${gcc_dir} gnustep-base objc)
add_library(power_doubles OBJECT ${here}/doubles/process.cpp ${here}/doubles/dlopen.cpp)
target_include_directories(power_doubles PRIVATE ${here}/linux/system)
target_compile_definitions(power_doubles PRIVATE NNBT_DOUBLES_DIRECTORY="${CMAKE_BINARY_DIR}")
add_dependencies(nnbt_core double_ioreport double_empty)
target_sources(nnbt_core INTERFACE $<TARGET_OBJECTS:power_doubles>)
target_link_options(nnbt_core INTERFACE LINKER:--wrap=dlopen)

add_executable(nnbt_power_driver ${here}/power_driver.cpp $<TARGET_OBJECTS:apple_doubles>)
target_include_directories(nnbt_power_driver PRIVATE ${PROJECT_SOURCE_DIR}/objc)
target_link_libraries(nnbt_power_driver PRIVATE nnbt_core)

add_executable(nnbt_plist_driver ${here}/plist_driver.cpp $<TARGET_OBJECTS:apple_doubles>)
target_link_libraries(nnbt_plist_driver PRIVATE nnbt_core)
