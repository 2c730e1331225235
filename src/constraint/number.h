/* Numbers of JSON. */
#ifndef SB_CONSTRAINT_NUMBER_H
#define SB_CONSTRAINT_NUMBER_H

#include "constraint/dfa.h"

/** Whole numbers have at most so many digits: all are below 2^63. */
#define SB_MOST_DIGITS 18
#define SB_MOST_INTEGER INT64_C(999999999999999999)

/** Adds the whole numbers from `low` to `high`, which are within ±SB_MOST_INTEGER; none where high < low. They have no zeros in
 * front and no fraction; 0 has no sign. */
void sb_nfa_integers(sb_nfa *nfa, uint32_t from, uint32_t to, int64_t low, int64_t high);

/** Adds any number: up to 15 digits before the point, up to 17 behind it, an exponent of up to two. */
void sb_nfa_numbers(sb_nfa *nfa, uint32_t from, uint32_t to);

/** A bound of numbers. */
typedef struct sb_number_bound {
    bool given, excluded;
    bool is_whole; /* it is `whole`, which `value` may round */
    int64_t whole;
    double value;
} sb_number_bound;

/** Adds numbers without an exponent between two bounds, of which one may be missing, with at most 15 digits that count, so that equal
 * texts are equal numbers. False: there are none. Errors, the builder's: UNSUPPORTED for bounds of more digits than that. */
bool sb_nfa_bounded_numbers(sb_nfa *nfa, uint32_t from, uint32_t to, sb_number_bound low, sb_number_bound high);

/** The shortest text with `%g`'s digits that is this number again. */
void sb_number_text(double number, char text[40]);

#endif
