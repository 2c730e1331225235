/* The one-argument elementary functions, so that every test covers the same list:
 * X(name, MPFR function or the name of one below, lowest and highest interesting argument). */
#ifndef SB_TESTS_NUMERICS_FUNCTIONS_H
#define SB_TESTS_NUMERICS_FUNCTIONS_H

/* 1/sqrt(x) is two roundings by definition, and up to 1.5 units away. */
#define SB_TEST_ALLOWED_ERROR(name) (strcmp(name, "rsqrt") == 0 ? 1.5 : 1.0)

/* The ones written to vectorise, and the others. */
#define SB_TEST_HOT_FUNCTIONS(X)                                                                                       \
    X(exp, mpfr_exp, -760.0, 720.0)                                                                                    \
    X(exp2, mpfr_exp2, -1080.0, 1030.0)                                                                                \
    X(log, mpfr_log, 0.0, 4.0)                                                                                         \
    X(tanh, mpfr_tanh, -25.0, 25.0)                                                                                    \
    X(sigmoid, sb_reference_sigmoid, -760.0, 60.0)                                                                     \
    X(erf, mpfr_erf, -6.5, 6.5)

#define SB_TEST_OTHER_FUNCTIONS(X)                                                                                     \
    X(log2, mpfr_log2, 0.0, 4.0)                                                                                       \
    X(log1p, mpfr_log1p, -1.0, 4.0)                                                                                    \
    X(expm1, mpfr_expm1, -50.0, 50.0)                                                                                  \
    X(softplus, sb_reference_softplus, -760.0, 60.0)                                                                   \
    X(rsqrt, sb_reference_rsqrt, 0.0, 16.0)                                                                            \
    X(sin, mpfr_sin, -100.0, 100.0)                                                                                    \
    X(cos, mpfr_cos, -100.0, 100.0)                                                                                    \
    X(tan, mpfr_tan, -100.0, 100.0)                                                                                    \
    X(asin, mpfr_asin, -1.0, 1.0)                                                                                      \
    X(acos, mpfr_acos, -1.0, 1.0)                                                                                      \
    X(atan, mpfr_atan, -10.0, 10.0)                                                                                    \
    X(sinh, mpfr_sinh, -711.0, 711.0)                                                                                  \
    X(cosh, mpfr_cosh, -711.0, 711.0)                                                                                  \
    X(asinh, mpfr_asinh, -10.0, 10.0)                                                                                  \
    X(acosh, mpfr_acosh, 1.0, 10.0)                                                                                    \
    X(atanh, mpfr_atanh, -1.0, 1.0)

#define SB_TEST_FUNCTIONS(X) SB_TEST_HOT_FUNCTIONS(X) SB_TEST_OTHER_FUNCTIONS(X)

#endif
