#include "page.h"

#include "text.h"

#include <samebit/samebit.h>

static const char style[] =
    ":root{--page:#fff;--card:#f6f7f9;--rim:#d9dde3;--ink:#1f242b;--soft:#5d6673;--good:#1c7c54;--"
    "fair:#1f5fae;"
    "--bad:#c2293d;--none:#98a2b0;--device:#7048c8;--cpu:#0b7d8f;--copy:#c96f12;"
    "color-scheme:light dark}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#15181d;--card:#1e2329;--rim:#363d47;--ink:#"
    "e8ebf0;"
    "--soft:#a3adba;--good:#55c795;--fair:#74aef5;--bad:#ff6d7f;--none:#66707e;--device:#8f6be0;--"
    "cpu:#1594a8;--copy:#d9822b}}\n"
    "body{font:14px/1.45 system-ui,'Segoe UI',Roboto,'Helvetica "
    "Neue',Arial,sans-serif;color:var(--ink);"
    "background:var(--page);max-width:1400px;margin:32px auto;padding:0 20px}\n"
    "h1{font-size:22px;margin:0}h2{font-size:16px;margin:32px 0 "
    "10px}.sub{color:var(--soft);margin:2px 0 20px}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:12px}.figure{background:var(--card);border:1px solid "
    "var(--rim);"
    "border-radius:8px;padding:10px 16px}.figure b{display:block;font-size:20px;font-weight:600}"
    ".figure span{color:var(--soft)}\n"
    ".chart{overflow-x:auto;background:var(--card);border:1px solid "
    "var(--rim);border-radius:8px;padding:8px}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "th{text-align:left;color:var(--soft);font-weight:500;border-bottom:1px solid "
    "var(--rim);padding:4px 10px;"
    "position:sticky;top:0;background:var(--page)}td{padding:3px 10px;border-bottom:1px solid "
    "var(--rim);"
    "vertical-align:top;overflow-wrap:anywhere}"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}"
    "\n"
    ".good{color:var(--good)}.fair{color:var(--fair)}.bad{color:var(--bad);font-weight:600}.none{"
    "color:var(--none)}\n"
    "svg "
    "text{fill:var(--soft);font-size:11px}.bar{height:9px;border-radius:3px;display:inline-block}\n"
    ".words{min-width:130px}"
    ".tight,th{white-space:nowrap;overflow-wrap:normal}"
    ".chip{display:inline-block;white-space:nowrap;overflow-wrap:normal;border-radius:4px;padding:"
    "0 7px;color:#fff;font-size:12px}"
    ".soft{color:var(--soft)}.copies td{padding-top:1px;padding-bottom:1px;font-size:13px;"
    "color:var(--soft)}"
    ".legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin:8px 0 10px;color:var(--soft)}"
    ".legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px}\n"
    "footer{color:var(--soft);margin:32px 0}\n";

void begin_page(FILE *file, const char *title, const char *subject) {
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
          file);
    print_markup(file, title);
    fprintf(file, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    print_markup(file, title);
    fputs("</h1>\n<p class=\"sub\">", file);
    print_markup(file, subject);
    fputs("</p>\n", file);
}

void end_page(FILE *file) {
    fprintf(file, "<footer>samebit %s, numerics %d</footer>\n</body>\n</html>\n", sb_version(), sb_numerics_version());
}

void print_cell(FILE *file, const char *class_name, const char *text) {
    if (class_name != NULL)
        fprintf(file, "<td class=\"%s\">", class_name);
    else
        fputs("<td>", file);
    print_markup(file, text);
    fputs("</td>", file);
}

const char *place_color(page_place place) {
    static const char *const colors[] = {"var(--none)", "var(--cpu)", "var(--device)", "var(--copy)"};
    return colors[place];
}

void print_place_cell(FILE *file, page_place place) {
    static const char *const names[] = {"", "cpu", "cuda", "copy"};
    if (place == PLACE_NONE)
        fputs("<td></td>", file);
    else
        fprintf(file, "<td><span class=\"chip\" style=\"background:%s\">%s</span></td>", place_color(place),
                names[place]);
}

static void print_legend_entry(FILE *file, page_place place, const char *what) {
    fprintf(file, "<span><i style=\"background:%s\"></i>", place_color(place));
    print_markup(file, what);
    fputs("</span>", file);
}

void print_places_legend(FILE *file, const char *device) {
    fputs("<div class=\"legend\">", file);
    print_legend_entry(file, PLACE_DEVICE, device);
    print_legend_entry(file, PLACE_CPU, "CPU");
    print_legend_entry(file, PLACE_COPY, "copies between them");
    fputs("</div>\n", file);
}

void print_figure(FILE *file, const char *number, const char *what) {
    fputs("<div class=\"figure\"><b>", file);
    print_markup(file, number);
    fputs("</b><span>", file);
    print_markup(file, what);
    fputs("</span></div>\n", file);
}
