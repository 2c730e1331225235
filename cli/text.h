/* Text on its way out: names from models are anybody's bytes, and reports want numbers that people can read. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Bytes for `printable` and the numbers below. */
#define TEXT_BYTES 160

/** A copy for the terminal: control characters and bytes that are not UTF-8 become '?', long text
 * is cut with '…'. Returns `room`. */
const char *printable(const char *text, char room[TEXT_BYTES]);
/** Prints all of a text in the same way. */
void print_escaped(FILE *file, const char *text);

/** Prints text for XML and HTML: markup is escaped, and what XML does not allow becomes U+FFFD. */
void print_markup(FILE *file, const char *text);

/** Text for JSON, or null for NULL; bytes that are not UTF-8 become U+FFFD. NULL only when memory runs out. */
json_t *text_json(const char *text);

/** Prints `value` (whose reference it takes) with a newline to `file`. False, after a message, when
 * it is NULL (memory ran out on the way) or cannot be written. */
bool print_json_value(FILE *file, json_t *value);

/** "1,234,567"; "12.3 k", "4.56 M", …; "17.2 MB". Each returns `room`. */
const char *grouped(int64_t number, char room[TEXT_BYTES]);
const char *scaled(double number, char room[TEXT_BYTES]);
const char *bytes_text(double bytes, char room[TEXT_BYTES]);
/** "1.23 µs", "45.6 ms", "7.89 s". */
const char *duration(double nanoseconds, char room[TEXT_BYTES]);

#endif
