/* Invar: neural networks with every output bit specified. This header includes the whole public interface. */
#ifndef INVAR_INVAR_H
#define INVAR_INVAR_H

#include <invar/compare.h>
#include <invar/device.h>
#include <invar/digest.h>
#include <invar/dtype.h>
#include <invar/error.h>
#include <invar/gemm.h>
#include <invar/inspect.h>
#include <invar/io.h>
#include <invar/isa.h>
#include <invar/model.h>
#include <invar/onnx.h>
#include <invar/session.h>
#include <invar/tensor.h>
#include <invar/value.h>
#include <invar/version.h>

#endif
