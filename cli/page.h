/* Self-contained HTML pages: one file, no script from elsewhere, no font, nothing to fetch. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdio.h>

/** Prints everything up to the page's first paragraph: `title` is its heading, `subject` the line
 * under it. */
void begin_page(FILE *file, const char *title, const char *subject);
void end_page(FILE *file);

/** Prints a cell of a table, the text escaped; `class_name` may be NULL ("n" aligns numbers). */
void print_cell(FILE *file, const char *class_name, const char *text);

/** Prints one of the big numbers at the top of a page. */
void print_figure(FILE *file, const char *number, const char *what);

#endif
