# GPU kernels: every src/cuda/*/*.cu compiled ahead of time for each architecture, compressed, and embedded in the library
# by the assembler. Appends to `sources` of the including folder. Without kernels everything else is built.
set(SAMEBIT_CUDA AUTO CACHE STRING
    "GPU kernels: AUTO (where there are nvcc and architectures to compile for), ON (an error where there are not) or OFF")
set_property(CACHE SAMEBIT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SAMEBIT_CUDA_ARCHITECTURES native CACHE STRING
    "What GPU kernels are compiled for: native (the GPUs of this machine), all, or a list of 80 (compute capability 8.x), 90a (9.0) and ptx (later ones)")
set(cuda_generated ${CMAKE_CURRENT_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${cuda_generated})

# Which of 80, 90a and ptx the GPUs of this machine run, as its driver's tool lists them; none without a GPU.
function(sb_native_architectures result)
  find_program(SAMEBIT_NVIDIA_SMI nvidia-smi PATHS /usr/lib/wsl/lib)
  set(found)
  set(listed "")
  if(SAMEBIT_NVIDIA_SMI)
    execute_process(COMMAND ${SAMEBIT_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE listed ERROR_QUIET)
  endif()
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${listed}")
  foreach(capability IN LISTS capabilities)
    if(capability VERSION_GREATER 9.0)
      list(APPEND found ptx)
    elseif(capability VERSION_EQUAL 9.0)
      list(APPEND found 90a)
    elseif(capability VERSION_GREATER_EQUAL 8.0)
      list(APPEND found 80)
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

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

# Targets are name, architecture, kind, capability, flags: machine code for 8.x, machine code for 9.0, with Hopper's own
# instructions where a source has them, and PTX for what comes after.
function(sb_cuda_targets wanted result)
  set(targets)
  set(ptx)
  if("80" IN_LIST wanted OR "ptx" IN_LIST wanted)
    sb_nvcc_knows(compute_80 sm_80 known)
    if(known AND "80" IN_LIST wanted)
      list(APPEND targets "80|sm_80|SB_CUDA_CUBIN|80|-cubin -gencode=arch=compute_80,code=sm_80")
    endif()
    if(known)
      set(ptx 80)
    endif()
  endif()
  if("90a" IN_LIST wanted OR "ptx" IN_LIST wanted)
    sb_nvcc_knows(compute_90a sm_90a known)
    if(known AND "90a" IN_LIST wanted)
      list(APPEND targets "90a|sm_90a|SB_CUDA_CUBIN_EXACT|90|-cubin -gencode=arch=compute_90a,code=sm_90a")
    endif()
    if(known)
      set(ptx 90)
    endif()
  endif()
  if(ptx AND "ptx" IN_LIST wanted)
    list(APPEND targets "ptx|compute_${ptx}|SB_CUDA_PTX|${ptx}|-ptx -arch=compute_${ptx}")
  endif()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()

set(cuda_toolkit 0)
set(cuda_targets)
set(cuda_missing)
if(NOT SAMEBIT_CUDA STREQUAL "OFF")
  set(cuda_wanted ${SAMEBIT_CUDA_ARCHITECTURES})
  if(cuda_wanted STREQUAL "native")
    sb_native_architectures(cuda_wanted)
  elseif(cuda_wanted STREQUAL "all")
    set(cuda_wanted 80 90a ptx)
  endif()
  foreach(word IN LISTS cuda_wanted)
    if(NOT word MATCHES "^(80|90a|ptx)$")
      message(FATAL_ERROR "SAMEBIT_CUDA_ARCHITECTURES has \"${word}\": it is native, all, or a list of 80, 90a and ptx")
    endif()
  endforeach()
  if(NOT cuda_wanted)
    set(cuda_missing "this machine has no GPU of compute capability 8.0 or newer to compile kernels for: set "
                     "SAMEBIT_CUDA_ARCHITECTURES to all, or to a list of 80, 90a and ptx, to have them")
  else()
    find_program(SAMEBIT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(SAMEBIT_NVCC)
      execute_process(COMMAND ${SAMEBIT_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
      if(nvcc_version MATCHES "release ([0-9]+)\\.([0-9]+)")
        math(EXPR cuda_toolkit "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
      endif()
      sb_cuda_targets("${cuda_wanted}" cuda_targets)
    endif()
    list(JOIN cuda_wanted ", " cuda_wanted)
    if(NOT cuda_targets)
      set(cuda_missing "no nvcc was found that compiles for ${cuda_wanted}: set SAMEBIT_NVCC to its path")
    endif()
  endif()
  string(CONCAT cuda_missing ${cuda_missing})
  if(cuda_missing AND SAMEBIT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SAMEBIT_CUDA is ON, and ${cuda_missing}; or set SAMEBIT_CUDA to OFF")
  elseif(cuda_missing)
    message(STATUS "Samebit is built without GPU kernels: ${cuda_missing}")
  else()
    message(STATUS "GPU kernels are compiled for ${cuda_wanted}")
  endif()
endif()
if(cuda_targets)
  find_program(SAMEBIT_GZIP gzip REQUIRED)
endif()

# The bit contract on the device: no contraction but a written fma, subnormals kept, correctly rounded division and root.
set(cuda_flags -O3 -std=c++17 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -I${CMAKE_CURRENT_SOURCE_DIR}
    -I${CMAKE_SOURCE_DIR}/include)
# A rule that makes `output` of a source; with an `image`, that is what nvcc writes, and `output` what gzip makes of it.
function(sb_compile_kernels source output target_flags image)
  separate_arguments(target_flags)
  set(written ${output})
  set(compress)
  if(image)
    set(written ${image})
    set(compress COMMAND ${SAMEBIT_GZIP} -9nf ${image})
  endif()
  get_filename_component(title ${written} NAME)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${SAMEBIT_NVCC} ${cuda_flags} ${target_flags} -MD -MT ${output} -MF ${written}.d ${source} -o ${written}
    ${compress}
    DEPENDS ${source}
    DEPFILE ${written}.d
    COMMENT "Compiling GPU kernels ${title}"
    VERBATIM)
endfunction()

set(cuda_assembly "")
set(cuda_declarations "")
set(cuda_table "")
set(cuda_images)
file(GLOB cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*/*.cu)
foreach(kernel IN LISTS cuda_kernels)
  get_filename_component(module ${kernel} NAME_WE)
  # A source that has Hopper's own instructions says in its first comment "Compiled for 90a by itself", or "alone" where it has
  # nothing else. Machine code of all others is made of the PTX of 9.0, which takes half of the time and is the same.
  file(STRINGS ${kernel} mark REGEX "Compiled for 90a (alone|by itself)" LIMIT_COUNT 1)
  set(ptx ${cuda_generated}/${module}.ptx)
  if(NOT mark MATCHES "alone" AND (cuda_targets MATCHES "compute_90\\|" OR (cuda_targets MATCHES "sm_90a\\|" AND NOT mark)))
    sb_compile_kernels(${kernel} ${ptx} "-ptx -arch=compute_90" "")
  endif()
  foreach(target IN LISTS cuda_targets)
    string(REPLACE "|" ";" parts "${target}")
    list(GET parts 0 name)
    if(mark MATCHES "alone" AND NOT name STREQUAL "90a")
      continue()
    endif()
    list(GET parts 1 architecture)
    list(GET parts 2 kind)
    list(GET parts 3 compute)
    list(GET parts 4 target_flags)
    set(image ${cuda_generated}/${module}.${architecture})
    if(name STREQUAL "90a" AND NOT mark)
      add_custom_command(
        OUTPUT ${image}.gz
        COMMAND ${SAMEBIT_NVCC} ${cuda_flags} -cubin -arch=sm_90a ${ptx} -o ${image}
        COMMAND ${SAMEBIT_GZIP} -9nf ${image}
        DEPENDS ${ptx}
        COMMENT "Assembling GPU kernels ${module} for ${architecture}"
        VERBATIM)
    elseif(architecture STREQUAL "compute_90")
      set(image ${ptx})
      add_custom_command(
        OUTPUT ${image}.gz
        COMMAND ${SAMEBIT_GZIP} -9nkf ${ptx}
        DEPENDS ${ptx}
        COMMENT "Compressing GPU kernels ${module} for ${architecture}"
        VERBATIM)
    else()
      sb_compile_kernels(${kernel} ${image}.gz "${target_flags}" ${image})
    endif()
    list(APPEND cuda_images ${image}.gz)
    set(symbol sb_cuda_image_${module}_${architecture})
    string(APPEND cuda_assembly "    .global ${symbol}, ${symbol}_end\n"
                                "    .hidden ${symbol}, ${symbol}_end\n"
                                "${symbol}:\n    .incbin \"${image}.gz\"\n${symbol}_end:\n")
    string(APPEND cuda_declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND cuda_table
           "    {\"${module}\", \"${architecture}\", ${kind}, ${compute}, ${symbol}, ${symbol}_end, true},\n")
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
