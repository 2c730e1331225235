# GPU kernels: every src/cuda/*/*.cu compiled ahead of time for each architecture, and embedded in the library by the
# assembler. Appends to `sources` of the including folder. Without nvcc there are no kernels, and everything else is built.
set(SAMEBIT_CUDA AUTO CACHE STRING "GPU kernels: AUTO (if nvcc is found), ON (an error without nvcc) or OFF")
set_property(CACHE SAMEBIT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SAMEBIT_CUDA_ARCHITECTURES "80;90a;ptx" CACHE STRING
    "What GPU kernels are compiled for: 80 (compute capability 8.x), 90a (9.0), ptx (later ones); fewer build faster")
set(cuda_generated ${CMAKE_CURRENT_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${cuda_generated})

# Whether nvcc compiles for an architecture: its own lists do not name all that it knows.
function(sb_nvcc_knows virtual real result)
  if(NOT DEFINED CACHE{SAMEBIT_NVCC_KNOWS_${real}})
    file(WRITE ${cuda_generated}/probe.cu "extern \"C\" __global__ void probe(void) {}\n")
    execute_process(
      COMMAND ${SAMEBIT_NVCC} -cubin -gencode=arch=${virtual},code=${real} ${cuda_generated}/probe.cu
              -o ${cuda_generated}/probe.cubin
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(SAMEBIT_NVCC_KNOWS_${real} OFF CACHE INTERNAL "")
    else()
      set(SAMEBIT_NVCC_KNOWS_${real} ON CACHE INTERNAL "")
    endif()
  endif()
  set(${result} ${SAMEBIT_NVCC_KNOWS_${real}} PARENT_SCOPE)
endfunction()

# Targets are architecture, kind, capability, flags: machine code for 8.x, machine code for 9.0 with Hopper's own instructions,
# and PTX for what comes after.
set(cuda_toolkit 0)
set(cuda_targets)
if(NOT SAMEBIT_CUDA STREQUAL "OFF")
  find_program(SAMEBIT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(SAMEBIT_NVCC)
    execute_process(COMMAND ${SAMEBIT_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    if(nvcc_version MATCHES "release ([0-9]+)\\.([0-9]+)")
      math(EXPR cuda_toolkit "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
    endif()
    sb_nvcc_knows(compute_80 sm_80 known)
    if(known AND "80" IN_LIST SAMEBIT_CUDA_ARCHITECTURES)
      list(APPEND cuda_targets "sm_80|SB_CUDA_CUBIN|80|-cubin -gencode=arch=compute_80,code=sm_80")
    endif()
    if(known)
      set(ptx 80)
    endif()
    sb_nvcc_knows(compute_90a sm_90a known)
    if(known AND "90a" IN_LIST SAMEBIT_CUDA_ARCHITECTURES)
      list(APPEND cuda_targets "sm_90a|SB_CUDA_CUBIN_EXACT|90|-cubin -gencode=arch=compute_90a,code=sm_90a")
    endif()
    if(known)
      set(ptx 90)
    endif()
    if(ptx AND "ptx" IN_LIST SAMEBIT_CUDA_ARCHITECTURES)
      list(APPEND cuda_targets "compute_${ptx}|SB_CUDA_PTX|${ptx}|-ptx -arch=compute_${ptx}")
    endif()
  endif()
  if(NOT cuda_targets AND SAMEBIT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SAMEBIT_CUDA is ON, and no nvcc was found that compiles for compute capability 8.0: set SAMEBIT_NVCC "
                        "to its path, or SAMEBIT_CUDA to OFF")
  elseif(NOT cuda_targets)
    message(STATUS "no nvcc: Samebit is built without GPU kernels")
  endif()
endif()

# The bit contract on the device: no contraction but a written fma, subnormals kept, correctly rounded division and root.
set(cuda_flags -O3 -std=c++17 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -I${CMAKE_CURRENT_SOURCE_DIR}
    -I${CMAKE_SOURCE_DIR}/include)
set(cuda_assembly "")
set(cuda_declarations "")
set(cuda_table "")
set(cuda_images)
file(GLOB cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*/*.cu)
foreach(kernel IN LISTS cuda_kernels)
  get_filename_component(module ${kernel} NAME_WE)
  foreach(target IN LISTS cuda_targets)
    string(REPLACE "|" ";" parts "${target}")
    list(GET parts 0 architecture)
    list(GET parts 1 kind)
    list(GET parts 2 compute)
    list(GET parts 3 target_flags)
    separate_arguments(target_flags)
    set(image ${cuda_generated}/${module}.${architecture})
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${SAMEBIT_NVCC} ${cuda_flags} ${target_flags} -MD -MT ${image} -MF ${image}.d ${kernel} -o ${image}
      DEPENDS ${kernel}
      DEPFILE ${image}.d
      COMMENT "Compiling GPU kernels ${module} for ${architecture}"
      VERBATIM)
    list(APPEND cuda_images ${image})
    set(symbol sb_cuda_image_${module}_${architecture})
    # PTX is text, for which the driver wants a NUL at the end; machine code is an ELF file, aligned as its tables are.
    string(APPEND cuda_assembly "    .balign 64\n    .global ${symbol}, ${symbol}_end\n"
                                "    .hidden ${symbol}, ${symbol}_end\n"
                                "${symbol}:\n    .incbin \"${image}\"\n${symbol}_end:\n    .byte 0\n")
    string(APPEND cuda_declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND cuda_table "    {\"${module}\", \"${architecture}\", ${kind}, ${compute}, ${symbol}, ${symbol}_end},\n")
  endforeach()
endforeach()

list(LENGTH cuda_images cuda_count)
set(cuda_source "/* Made by the build: the GPU kernels that it has embedded. */\n#include \"cuda/driver/image.h\"\n\n")
if(cuda_count GREATER 0)
  enable_language(ASM)
  file(CONFIGURE OUTPUT ${cuda_generated}/images.S @ONLY
       CONTENT "    .section .rodata\n${cuda_assembly}    .section .note.GNU-stack,\"\",%progbits\n")
  set_source_files_properties(${cuda_generated}/images.S PROPERTIES OBJECT_DEPENDS "${cuda_images}")
  list(APPEND sources ${cuda_generated}/images.S)
  string(APPEND cuda_source "${cuda_declarations}static const sb_cuda_image images[] = {\n${cuda_table}};\n\n"
         "const sb_cuda_images sb_cuda_embedded_images = {${cuda_toolkit}, ${cuda_count}, images};\n")
else()
  string(APPEND cuda_source "const sb_cuda_images sb_cuda_embedded_images = {0, 0, NULL};\n")
endif()
file(CONFIGURE OUTPUT ${cuda_generated}/embedded_images.c CONTENT "${cuda_source}" @ONLY)
list(APPEND sources ${cuda_generated}/embedded_images.c)
