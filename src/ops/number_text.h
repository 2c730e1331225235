/* Numbers as text and text as numbers, for Cast: the same characters and bits in every locale. */
#ifndef SB_OPS_NUMBER_TEXT_H
#define SB_OPS_NUMBER_TEXT_H

#include "tensor/tensor.h"

#define SB_NUMBER_TEXT_BYTES 40

/** Writes an element of any dtype but text and returns the number of characters (at most
 * SB_NUMBER_TEXT_BYTES - 1).
 *
 * Integers in decimal; bool "True" or "False"; floats by the fewest digits whose correctly rounded
 * decimal reads back as the same value, as numpy prints them: "0.1", "1.0", "1e-05", "1.5e+16" (an
 * exponent below 1e-4 and from 1e16 on); "INF", "-INF", "NaN". Small floats as the f32 that has their value. */
int sb_number_to_text(sb_dtype dtype, const void *element, char text[SB_NUMBER_TEXT_BYTES]);

/** Reads the whole of `text` as a number of `dtype` into `*element`; false when it is none.
 *
 * Decimal numbers, plain or with an exponent, blanks around them allowed; "INF", "+INF", "-INF",
 * "NaN" in any case; "True" and "False" for bool. Floats are rounded once from the decimal (f16 and
 * bf16: through f64). Integers are read exactly, saturating; numbers with a fraction or an exponent
 * go through f64 by the rules of Cast. Not for the small types: read an f64 and convert it. */
bool sb_number_from_text(sb_string text, sb_dtype dtype, void *element);

#endif
