/* Times every tile shape of the GPU's f32 products on a list of sizes, to see whether the choice among them is right.
 *
 *     gpu_tiles_bench PRODUCT.onnx M,K,N…
 *
 * PRODUCT.onnx multiplies a[m,k] by b[k,n] with symbolic extents: bench/gpu_bench.py leaves one with its models. Lines:
 * tiles M,K,N SHAPE us=… tflops=…, with a star behind the shape that is chosen when none is forced.
 *
 *     gpu_tiles_bench NETWORK.onnx D,D,…
 *
 * Runs a network of one f32 input of these extents with each shape forced in turn,
 * for a profiler to look at. Needs a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "cuda/contraction/tiles.h"
#include "measure.h"

#define RUNS 41

static int report(const sb_error *error) {
    fprintf(stderr, "gpu_tiles_bench: %s\n", error->message);
    return 1;
}

static int compare(const void *left, const void *right) {
    const double *first = left, *second = right;
    return (*first > *second) - (*first < *second);
}

static sb_status upload(sb_device *device, int rank, const int64_t *dims, sb_tensor **tensor, sb_error *error) {
    sb_tensor *host;
    sb_status status = sb_tensor_create(SB_F32, rank, dims, &host, error);
    if (status != SB_OK)
        return status;
    float *data = sb_tensor_mutable_data(host);
    for (int64_t i = 0; i < sb_tensor_elements(host); i++)
        data[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    status = sb_tensor_to_device(device, host, tensor, error);
    sb_tensor_release(host);
    return status;
}

/* The median of some runs, in us. */
static sb_status measure(sb_session *session, sb_tensor **inputs, double *median, sb_error *error) {
    double times[RUNS];
    for (int i = -3; i < RUNS; i++) {
        sb_tensor *output;
        double start = now_us();
        sb_status status = sb_session_run_tensors(session, inputs, &output, error);
        if (status != SB_OK)
            return status;
        if (i >= 0)
            times[i] = now_us() - start;
        sb_tensor_release(output);
    }
    qsort(times, RUNS, sizeof times[0], compare);
    *median = times[RUNS / 2];
    return SB_OK;
}

static sb_status bench_size(sb_device *device, sb_session *session, const char *text, sb_error *error) {
    long long m, k, n;
    if (sscanf(text, "%lld,%lld,%lld", &m, &k, &n) != 3 || m < 1 || k < 1 || n < 1) {
        snprintf(error->message, sizeof error->message, "%s is not M,K,N", text);
        return SB_ERROR_INVALID_ARGUMENT;
    }
    sb_tensor *inputs[2] = {NULL, NULL};
    sb_status status = upload(device, 2, (const int64_t[]){m, k}, &inputs[0], error);
    if (status == SB_OK)
        status = upload(device, 2, (const int64_t[]){k, n}, &inputs[1], error);
    for (int i = 0; i < sb_cuda_tile_count() && status == SB_OK; i++) {
        double median = 0;
        sb_cuda_tile_force(i);
        status = measure(session, inputs, &median, error);
        sb_cuda_tile_force(-1);
        const sb_cuda_tile *tile = sb_cuda_tile_at(i), *chosen = sb_cuda_tile_choose(1, m, n, 0, 132);
        printf("tiles %s %s us=%.1f tflops=%.1f%s\n", text, tile->name, median,
               2.0 * (double)m * (double)k * (double)n / median / 1e6, tile == chosen ? " *" : "");
    }
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    return status;
}

static sb_status run_network(sb_device *device, sb_session *session, const char *text, sb_error *error) {
    int64_t dims[SB_MAX_RANK];
    int rank = 0;
    for (char *end = (char *)text; *text != '\0' && rank < SB_MAX_RANK; text = *end == ',' ? end + 1 : end)
        dims[rank++] = strtoll(text, &end, 10);
    sb_tensor *input = NULL;
    sb_status status = upload(device, rank, dims, &input, error);
    for (int i = 0; i < 2 * sb_cuda_tile_count() && status == SB_OK; i++) {
        sb_tensor *output = NULL;
        sb_cuda_tile_force(i / 2);
        double start = now_us();
        status = sb_session_run_tensors(session, &input, &output, error);
        if (status == SB_OK && i % 2 == 1)
            printf("network %s us=%.1f\n", sb_cuda_tile_at(i / 2)->name, now_us() - start);
        sb_tensor_release(output);
    }
    sb_tensor_release(input);
    return status;
}

int main(int argc, char **argv) {
    sb_error error = {SB_OK, ""};
    sb_device *device = NULL;
    sb_model *model = NULL;
    sb_session *session = NULL;
    if (argc < 3) {
        fprintf(stderr, "gpu_tiles_bench PRODUCT.onnx M,K,N…\n");
        return 2;
    }
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_status status = sb_device_open(NULL, 0, &device, &error);
    options.device = device;
    options.device_outputs = true;
    options.graphs = SB_GRAPHS_OFF;
    if (status == SB_OK)
        status = sb_model_load(argv[1], NULL, &model, &error);
    if (status == SB_OK)
        status = sb_session_create(model, &options, &session, &error);
    for (int i = 2; i < argc && status == SB_OK; i++)
        status = sb_model_input_count(model) == 2 ? bench_size(device, session, argv[i], &error)
                                                  : run_network(device, session, argv[i], &error);
    sb_session_destroy(session);
    sb_model_release(model);
    sb_device_release(device);
    return status == SB_OK ? 0 : report(&error);
}
