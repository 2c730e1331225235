/* The host's half of elementary_probe: loops compiled by the C compiler with the flags of a CPU kernel. */
#ifndef SB_TESTS_NUMERICS_ELEMENTARY_HOST_H
#define SB_TESTS_NUMERICS_ELEMENTARY_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* y[i] = function(x[i]) for i < count; `function` is a place in SB_TEST_FUNCTIONS. */
void sb_host_evaluate_f32(int function, const float *x, float *y, int count);
void sb_host_evaluate_f64(int function, const double *x, double *y, int count);
/* z[i] = pow(x[i], y[i]). */
void sb_host_pow_f32(const float *x, const float *y, float *z, int count);
void sb_host_pow_f64(const double *x, const double *y, double *z, int count);

#ifdef __cplusplus
}
#endif

#endif
