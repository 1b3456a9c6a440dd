# Copies MLX's CPU library, and the libraries it needs, from the build requirement mlx-cpu to
# nnbt/_mlx_cpu: `import mlx.core` needs it on machines without an NVIDIA driver
# (python/nnbt/machine/mlx.py).
execute_process(
  COMMAND ${Python_EXECUTABLE} -c [[
from importlib.metadata import distribution
d = distribution("mlx-cpu")
print(d.version, d.locate_file("mlx/lib/libmlx.so"), d.locate_file("mlx_cpu.libs"), d.locate_file(""), sep=";")
]]
  OUTPUT_VARIABLE mlx_cpu OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "mlx-cpu is not installed in the build environment: "
    "pip install 'mlx-cpu==<the version pyproject.toml names>' (or build without --no-build-isolation)")
endif()
list(GET mlx_cpu 0 mlx_cpu_version)
list(GET mlx_cpu 1 mlx_cpu_library)
list(GET mlx_cpu 2 mlx_cpu_libs)
list(GET mlx_cpu 3 site_packages)
install(FILES ${mlx_cpu_library} DESTINATION nnbt/_mlx_cpu/mlx/lib)
install(DIRECTORY ${mlx_cpu_libs} DESTINATION nnbt/_mlx_cpu)
install(DIRECTORY ${site_packages}/mlx_cpu-${mlx_cpu_version}.dist-info/licenses
  DESTINATION nnbt/_mlx_cpu OPTIONAL)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/VERSION "${mlx_cpu_version}\n")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/VERSION DESTINATION nnbt/_mlx_cpu)
