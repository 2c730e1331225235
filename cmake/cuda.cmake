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

# Whether nvcc compiles a source for 9.0, whose PTX all images come from but those with Hopper's own instructions; its own lists do
# not name all that it knows.
function(sb_nvcc_compiles source flags result)
  string(MAKE_C_IDENTIFIER "SAMEBIT_${SAMEBIT_NVCC}_${source}_${flags}" compiles)
  if(NOT DEFINED CACHE{${compiles}})
    execute_process(
      COMMAND ${SAMEBIT_NVCC} ${flags} -cubin -gencode=arch=compute_90a,code=sm_90a ${source} -o ${cuda_generated}/probe.cubin
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(${compiles} OFF CACHE INTERNAL "")
    else()
      set(${compiles} ON CACHE INTERNAL "")
    endif()
  endif()
  set(${result} ${${compiles}} PARENT_SCOPE)
endfunction()

# Targets are name, architecture, kind and capability: machine code for 8.x, machine code for 9.0, with Hopper's own
# instructions where a source has them, and PTX for what comes after.
function(sb_cuda_targets wanted result)
  set(targets)
  file(WRITE ${cuda_generated}/probe.cu "extern \"C\" __global__ void probe(void) {}\n")
  sb_nvcc_compiles(${cuda_generated}/probe.cu "" known)
  if(known)
    if("80" IN_LIST wanted)
      list(APPEND targets "80|sm_80|SB_CUDA_CUBIN|80")
    endif()
    if("90a" IN_LIST wanted)
      list(APPEND targets "90a|sm_90a|SB_CUDA_CUBIN_EXACT|90")
    endif()
    if("ptx" IN_LIST wanted)
      list(APPEND targets "ptx|compute_90|SB_CUDA_PTX|90")
    endif()
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
  # Half of what gzip -12 leaves, and no slower to unpack. Short chains of candidates take a third of the time of preset 9e, and leave 12 %
  # more. What unpacks an image takes as much memory as the dictionary has, and the largest image has 2 MB.
  find_program(SAMEBIT_XZ NAMES xz REQUIRED)
  set(cuda_compress ${SAMEBIT_XZ} --format=xz --check=crc32 --lzma2=preset=6,mf=hc4,nice=24,dict=4MiB -f)
endif()

# The bit contract on the device: no contraction but a written fma, subnormals kept, correctly rounded division and root.
set(cuda_flags -O3 -std=c++17 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -I${CMAKE_CURRENT_SOURCE_DIR}
    -I${CMAKE_SOURCE_DIR}/include)
if(cuda_targets)
  # The preamble belongs to the toolkit's headers: where it does not go with them, theirs is read.
  set(cuda_preamble ${CMAKE_CURRENT_SOURCE_DIR}/cuda/preamble)
  file(WRITE ${cuda_generated}/preamble.cu
       "extern \"C\" __global__ void probe(float4 *out, double number) {\n"
       "    float pair[2] = {__shfl_sync(~0u, __fmaf_rn(floorf(out->x), out->y, ceilf(out->z)), 0), fmodf(out->w, out->y)};\n"
       "    atomicAdd(&out->x, (float)(floor(number) + ceil(number) + fmod(number, __fma_rn(number, number, number))));\n"
       "    __syncthreads();\n"
       "    memcpy(&out[threadIdx.x], pair, sizeof pair);\n"
       "}\n")
  sb_nvcc_compiles(${cuda_generated}/preamble.cu -I${cuda_preamble} known)
  if(known)
    list(PREPEND cuda_flags -I${cuda_preamble})
  endif()
endif()
# The modules that a source is compiled into: one of its name, or with "A module for each of a, b." in its first comment NAME_a
# and NAME_b, for which SB_MODULE_a and SB_MODULE_b are defined.
function(sb_kernel_modules source result)
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} mark REGEX "A module for each of [a-z0-9, ]+\\." LIMIT_COUNT 1)
  set(modules ${name})
  if(mark MATCHES "A module for each of ([a-z0-9, ]+)\\.")
    string(REPLACE ", " ";" modules "${CMAKE_MATCH_1}")
    list(TRANSFORM modules PREPEND ${name}_)
  endif()
  set(${result} "${modules}" PARENT_SCOPE)
endfunction()

# A rule that makes `output` of a source; with an `image`, that is what nvcc writes, and `output` what xz makes of it.
function(sb_compile_kernels source output target_flags image)
  separate_arguments(target_flags)
  set(written ${output})
  set(compress)
  if(image)
    set(written ${image})
    set(compress COMMAND ${cuda_compress} ${image})
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

# A rule that makes `output` of a file that another rule makes, by a command that leaves it there.
function(sb_derive_image output input)
  get_filename_component(title ${output} NAME)
  add_custom_command(OUTPUT ${output} ${ARGN} DEPENDS ${input} COMMENT "Making ${title}" VERBATIM)
endfunction()

set(cuda_assembly "")
set(cuda_declarations "")
set(cuda_table "")
set(cuda_images)

# What makes PTX of 8.0 of PTX of 9.0: lines that end in "// 9.0" are left out, and what follows "// 8.0: " counts, both of which
# only assembly in kernels has. ptxas knows what 8.0 does not have.
set(cuda_to_80 sed -e "s/^\\.target sm_90/.target sm_80/" -e "/\\/\\/ 9\\.0$/d" -e "s/\\/\\/ 8\\.0: //")

# Adds the images of a module of `source`, for all targets that it is for. A source that has Hopper's own instructions says in its
# first comment "Compiled for 90a by itself", or "alone" where it has nothing else. Machine code of all others, and of all for 8.0, is
# made of the PTX of 9.0: the compiler takes more than half of the time, and does the same for either.
macro(sb_add_module source module)
  file(STRINGS ${source} mark REGEX "Compiled for 90a (alone|by itself)" LIMIT_COUNT 1)
  get_filename_component(name ${source} NAME_WE)
  set(define "")
  if(NOT "${module}" STREQUAL name)
    string(REGEX REPLACE "^${name}_" "-DSB_MODULE_" define ${module})
  endif()
  set(ptx ${cuda_generated}/${module}.ptx)
  set(has_ptx OFF)
  foreach(target IN LISTS cuda_targets)
    string(REPLACE "|" ";" parts "${target}")
    list(POP_FRONT parts name architecture kind compute)
    if(mark MATCHES "alone" AND NOT name STREQUAL "90a")
      continue()
    endif()
    set(image ${cuda_generated}/${module}.${architecture})
    set(from_ptx ON)
    if(name STREQUAL "90a" AND mark)
      set(from_ptx OFF)
    endif()
    if(from_ptx AND NOT has_ptx)
      sb_compile_kernels(${source} ${ptx} "-ptx -arch=compute_90 ${define}" "")
      set(has_ptx ON)
    endif()
    if(NOT from_ptx)
      sb_compile_kernels(${source} ${image}.xz "-cubin -gencode=arch=compute_90a,code=sm_90a ${define}" ${image})
    elseif(name STREQUAL "ptx")
      set(image ${ptx})
      sb_derive_image(${ptx}.xz ${ptx} COMMAND ${cuda_compress} -k ${ptx})
    elseif(name STREQUAL "90a")
      sb_derive_image(${image}.xz ${ptx} COMMAND ${SAMEBIT_NVCC} ${cuda_flags} -cubin -arch=sm_90a ${ptx} -o ${image}
                      COMMAND ${cuda_compress} ${image})
    else()
      sb_derive_image(${image}.xz ${ptx} COMMAND ${cuda_to_80} ${ptx} > ${image}.ptx
                      COMMAND ${SAMEBIT_NVCC} ${cuda_flags} -cubin -arch=sm_80 ${image}.ptx -o ${image}
                      COMMAND ${cuda_compress} ${image})
    endif()
    list(APPEND cuda_images ${image}.xz)
    set(symbol sb_cuda_image_${module}_${architecture})
    string(APPEND cuda_assembly "    .global ${symbol}, ${symbol}_end\n"
                                "    .hidden ${symbol}, ${symbol}_end\n"
                                "${symbol}:\n    .incbin \"${image}.xz\"\n${symbol}_end:\n")
    string(APPEND cuda_declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND cuda_table
           "    {\"${module}\", \"${architecture}\", ${kind}, ${compute}, ${symbol}, ${symbol}_end, true},\n")
  endforeach()
endmacro()

file(GLOB cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*/*.cu)
foreach(kernel IN LISTS cuda_kernels)
  sb_kernel_modules(${kernel} modules)
  foreach(module IN LISTS modules)
    sb_add_module(${kernel} ${module})
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
