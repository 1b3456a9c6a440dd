# Objective-C++ on Apple systems: the sources in objc/ and the frameworks they use.
enable_language(OBJCXX)
set(CMAKE_OBJCXX_STANDARD 20)
set(CMAKE_OBJCXX_STANDARD_REQUIRED ON)
file(GLOB objc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/objc/*.mm
  ${PROJECT_SOURCE_DIR}/objc/macos/*.mm)
target_sources(nnbt_core PRIVATE ${objc_sources})
target_include_directories(nnbt_core PRIVATE ${PROJECT_SOURCE_DIR}/objc)
set(objc_options -fobjc-arc -Wall -Wextra -Wshadow -Wconversion -Wundeclared-selector
  -Wobjc-method-access -Wunguarded-availability-new)
target_compile_options(nnbt_core PRIVATE "$<$<COMPILE_LANGUAGE:OBJCXX>:${objc_options}>")
foreach(framework Foundation CoreFoundation Metal MetalPerformanceShaders
    MetalPerformanceShadersGraph)
  target_link_libraries(nnbt_core PUBLIC "-framework ${framework}")
endforeach()
target_link_libraries(nnbt_core PUBLIC objc)

include(cmake/helper.cmake)
nnbt_add_helper(nnbt_helper "${objc_options}")
foreach(framework IOKit IOSurface Security) # for objc/macos, used by the helper only
  target_link_libraries(nnbt_helper PRIVATE "-framework ${framework}")
endforeach()
install(TARGETS nnbt_helper RUNTIME DESTINATION nnbt)
