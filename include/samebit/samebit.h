/* Samebit: neural networks with every output bit specified. This header includes the whole public interface. */
#ifndef SAMEBIT_SAMEBIT_H
#define SAMEBIT_SAMEBIT_H

#include <samebit/builder.h>
#include <samebit/compare.h>
#include <samebit/device.h>
#include <samebit/digest.h>
#include <samebit/dtype.h>
#include <samebit/error.h>
#include <samebit/gemm.h>
#include <samebit/inspect.h>
#include <samebit/io.h>
#include <samebit/isa.h>
#include <samebit/llm.h>
#include <samebit/model.h>
#include <samebit/onnx.h>
#include <samebit/session.h>
#include <samebit/state.h>
#include <samebit/tensor.h>
#include <samebit/value.h>
#include <samebit/version.h>

#endif
