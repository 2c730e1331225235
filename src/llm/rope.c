#include "llm/rope.h"

#include <math.h>

#include "base/allocation.h"
#include "numerics/convert.h"
#include "numerics/exp_log_f64.h"
#include "numerics/power_f64.h"
#include "numerics/trigonometric.h"

#define TWO_PI 0x1.921fb54442d18p+2

/* ---- inverse frequencies, in f64 ---- */

static double frequency_of(const sb_llm_config *config, const sb_rope_config *rope, int64_t pair) {
    return 1.0 / sb_pow_f64(rope->base, (double)(2 * pair) / (double)config->rotated);
}

/* Slow turns are stretched, quick ones kept, and those between mixed. */
static double llama3_frequency(const sb_rope_config *rope, double plain) {
    double wave = TWO_PI / plain, original = (double)rope->original;
    if (wave > original / rope->low)
        return plain / rope->factor;
    if (wave < original / rope->high)
        return plain;
    double smooth = (original / wave - rope->low) / (rope->high - rope->low);
    return (1.0 - smooth) * (plain / rope->factor) + smooth * plain;
}

/* The pair that turns `turns` times over the original context. */
static double yarn_pair(const sb_llm_config *config, const sb_rope_config *rope, double turns) {
    double wave = (double)rope->original / (turns * TWO_PI);
    return (double)config->rotated * sb_log_f64(wave) / (2.0 * sb_log_f64(rope->base));
}

static double yarn_frequency(const sb_llm_config *config, const sb_rope_config *rope, int64_t pair, double plain) {
    double low = yarn_pair(config, rope, rope->fast), high = yarn_pair(config, rope, rope->slow);
    if (rope->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0.0 ? low : 0.0;
    high = high < (double)(config->rotated - 1) ? high : (double)(config->rotated - 1);
    if (low == high)
        high += 0.001;
    double ramp = ((double)pair - low) / (high - low);
    ramp = ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp;
    return plain / rope->factor * ramp + plain * (1.0 - ramp);
}

static double yarn_magnitude(double factor, double scale) {
    return factor <= 1.0 ? 1.0 : 0.1 * scale * sb_log_f64(factor) + 1.0;
}

static double scale_of(const sb_rope_config *rope) {
    bool scales = rope->scaling == SB_ROPE_YARN || rope->scaling == SB_ROPE_LONG;
    if (!scales)
        return 1.0;
    if (rope->attention_factor != 0)
        return rope->attention_factor;
    if (rope->scaling == SB_ROPE_LONG)
        return rope->factor <= 1.0 ? 1.0 : sqrt(1.0 + sb_log_f64(rope->factor) / sb_log_f64((double)rope->original));
    if (rope->mscale != 0 && rope->mscale_all_dim != 0)
        return yarn_magnitude(rope->factor, rope->mscale) / yarn_magnitude(rope->factor, rope->mscale_all_dim);
    return yarn_magnitude(rope->factor, 1.0);
}

/* ---- factors of each pair ---- */

static sb_status factors_from_list(const sb_checkpoint *checkpoint, const json_t *list, const char *name, int64_t pairs,
                                   double *factors, sb_error *error) {
    bool fits = json_is_array(list) && json_array_size(list) == (size_t)pairs;
    for (int64_t i = 0; fits && i < pairs; i++) {
        factors[i] = json_number_value(json_array_get(list, (size_t)i));
        fits = factors[i] > 0;
    }
    if (fits)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: \"%s\" is no list of %lld numbers above 0", checkpoint->path,
                   name, (long long)pairs);
}

static sb_status factors_from_tensor(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor, int64_t pairs,
                                     double *factors, sb_error *error) {
    sb_tensor *values;
    if (tensor->elements != pairs)
        return sb_fail(
            error, SB_ERROR_INVALID_FILE, "%.300s: tensor '%.200s' has %lld elements where %lld are expected",
            checkpoint->files[tensor->file].path, tensor->name, (long long)tensor->elements, (long long)pairs);
    SB_TRY(sb_checkpoint_read(checkpoint, tensor, SB_F32, &values, error));
    bool fits = true;
    for (int64_t i = 0; i < pairs; i++) {
        factors[i] = (double)((const float *)sb_tensor_data(values))[i];
        fits = fits && factors[i] > 0;
    }
    sb_tensor_release(values);
    if (fits)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: tensor '%.200s' has a factor that is not above 0",
                   checkpoint->files[tensor->file].path, tensor->name);
}

/* 1 where there are none. */
static sb_status factors_of(const sb_checkpoint *checkpoint, const sb_llm_config *config, const sb_rope_config *rope,
                            int64_t context, double *factors, sb_error *error) {
    int64_t pairs = config->rotated / 2;
    bool is_long = context > rope->original;
    for (int64_t i = 0; i < pairs; i++)
        factors[i] = 1.0;
    if (config->gguf && rope == &config->rope) {
        /* All that are there count as used, whichever the context takes. */
        const sb_checkpoint_tensor *all = sb_checkpoint_find(checkpoint, "rope_freqs.weight");
        const sb_checkpoint_tensor *far = sb_checkpoint_find(checkpoint, "rope_factors_long.weight");
        const sb_checkpoint_tensor *near = sb_checkpoint_find(checkpoint, "rope_factors_short.weight");
        const sb_checkpoint_tensor *taken = all != NULL ? all : is_long ? far : near;
        return taken != NULL ? factors_from_tensor(checkpoint, taken, pairs, factors, error) : SB_OK;
    }
    if (rope->scaling != SB_ROPE_LONG)
        return SB_OK;
    return factors_from_list(checkpoint, is_long ? rope->long_factors : rope->short_factors,
                             is_long ? "long_factor" : "short_factor", pairs, factors, error);
}

sb_status sb_rope_frequencies(const sb_checkpoint *checkpoint, const sb_llm_config *config, const sb_rope_config *rope,
                              int64_t context, float *frequencies, float *scale, sb_error *error) {
    int64_t pairs = config->rotated / 2;
    double *factors = sb_allocate_array((size_t)pairs, sizeof *factors);
    if (factors == NULL)
        return sb_fail_memory(error, (size_t)pairs * sizeof *factors);
    sb_status status = factors_of(checkpoint, config, rope, context, factors, error);
    for (int64_t i = 0; i < pairs && status == SB_OK; i++) {
        double plain = frequency_of(config, rope, i) / factors[i];
        if (rope->scaling == SB_ROPE_LINEAR)
            plain /= rope->factor;
        else if (rope->scaling == SB_ROPE_LLAMA3)
            plain = llama3_frequency(rope, plain);
        else if (rope->scaling == SB_ROPE_YARN)
            plain = yarn_frequency(config, rope, i, plain);
        frequencies[i] = (float)plain;
    }
    sb_free(factors);
    *scale = (float)scale_of(rope);
    return status;
}

/* ---- tables ---- */

static void store(sb_dtype dtype, sb_tensor *table, int64_t at, float value) {
    void *data = sb_tensor_mutable_data(table);
    if (dtype == SB_F32)
        ((float *)data)[at] = value;
    else
        ((uint16_t *)data)[at] = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
}

static void fill(int64_t context, int64_t pairs, const float *frequencies, float scale, sb_dtype dtype,
                 sb_tensor *cosines, sb_tensor *sines) {
    for (int64_t position = 0; position < context; position++) {
        for (int64_t i = 0; i < pairs; i++) {
            float angle = (float)position * frequencies[i];
            store(dtype, cosines, position * pairs + i, sb_cos_f32(angle) * scale);
            store(dtype, sines, position * pairs + i, sb_sin_f32(angle) * scale);
        }
    }
}

sb_status sb_rope_tables(const sb_checkpoint *checkpoint, const sb_llm_config *config, const sb_rope_config *rope,
                         int64_t context, sb_dtype dtype, sb_tensor **cosines, sb_tensor **sines, sb_error *error) {
    int64_t pairs = config->rotated / 2;
    const int64_t dims[] = {context, pairs};
    float scale, *frequencies = sb_allocate_array((size_t)pairs, sizeof *frequencies);
    if (frequencies == NULL)
        return sb_fail_memory(error, (size_t)pairs * sizeof *frequencies);
    sb_tensor *first = NULL, *second = NULL;
    sb_status status = sb_rope_frequencies(checkpoint, config, rope, context, frequencies, &scale, error);
    if (status == SB_OK)
        status = sb_tensor_create(dtype, 2, dims, &first, error);
    if (status == SB_OK)
        status = sb_tensor_create(dtype, 2, dims, &second, error);
    if (status == SB_OK)
        fill(context, pairs, frequencies, scale, dtype, first, second);
    sb_free(frequencies);
    if (status != SB_OK) {
        sb_tensor_release(first);
        sb_tensor_release(second);
        return status;
    }
    *cosines = first;
    *sines = second;
    return SB_OK;
}
