/* Characters as the texts of JSON write them. */
#ifndef SB_CONSTRAINT_CHARACTERS_H
#define SB_CONSTRAINT_CHARACTERS_H

#include "constraint/nfa.h"

#define SB_LAST_POINT 0x10ffffu

typedef struct sb_point_range {
    uint32_t low, high;
} sb_point_range;

/** Edges for one character of the ranges, each written in one way: as itself where JSON allows it; else with the short escape, or
 * where there is none with \u and four digits. U+0000 and surrogates are in no text. The first byte has the action. */
void sb_nfa_points(sb_nfa *nfa, uint32_t from, uint32_t to, const sb_point_range *ranges, size_t count,
                   sb_count_action action);
/** Edges for any character, written in any way that JSON has, surrogates in pairs. The first byte has the action. */
void sb_nfa_character(sb_nfa *nfa, uint32_t from, uint32_t to, sb_count_action action);
/** States for the characters of a text of `bytes` bytes of UTF-8, each written as by sb_nfa_points; returns the last. */
uint32_t sb_nfa_written(sb_nfa *nfa, uint32_t from, const char *text, size_t bytes);

#endif
