/* Self-contained HTML pages: one file, no script from elsewhere, no font, nothing to fetch. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdio.h>

/** Prints everything up to the page's first paragraph: `title` is its heading, `subject` the line under it. */
void begin_page(FILE *file, const char *title, const char *subject);
void end_page(FILE *file);

/** Prints a cell of a table, the text escaped; `class_name` may be NULL ("n" aligns numbers). */
void print_cell(FILE *file, const char *class_name, const char *text);

/* Where something happened, by colour. */
typedef enum page_place {
    PLACE_NONE, /* known before the run */
    PLACE_CPU,
    PLACE_DEVICE,
    PLACE_COPY
} page_place;

/** "var(--device)" and the like: a colour that is legible on the page's background. */
const char *place_color(page_place place);
/** Prints a cell with "cuda", "cpu", "copy", or nothing, on its colour. */
void print_place_cell(FILE *file, page_place place);
/** Prints what the colours mean; `device` is what the device is called. */
void print_places_legend(FILE *file, const char *device);

/** Prints one of the big numbers at the top of a page. */
void print_figure(FILE *file, const char *number, const char *what);

#endif
