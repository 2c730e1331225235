/* Which piece of the work in flight is done next. */
#include "host_engines.h"

static uint64_t tickets;

uint64_t host_next_ticket(void) {
    return tickets++;
}

void host_engines_begin(void) {
    tickets = 0;
    host_copies_begin();
    host_products_begin();
}

void host_engines_end(void) {
    host_copies_end();
}

void host_engines_end_thread(void) {
    host_copies_end_thread();
    host_products_end_thread();
}

static unsigned count_of(uint64_t (*ticket_of)(unsigned i)) {
    unsigned count = 0;
    while (ticket_of(count) != HOST_NO_WORK)
        count++;
    return count;
}

/* Whether the schedule has a piece of work with this ticket done rather than the one chosen before. */
static bool is_rather(uint64_t ticket, uint64_t before) {
    return before == HOST_NO_WORK || (host_now.order == HOST_OLDEST_FIRST ? ticket < before : ticket > before);
}

bool host_engines_work(void) {
    unsigned copies = count_of(host_copy_ticket), products = count_of(host_products_ticket), chosen = 0;
    if (copies + products == 0)
        return false;
    uint64_t best = HOST_NO_WORK;
    for (unsigned i = 0; i < copies + products && host_now.order != HOST_ANY_ORDER; i++) {
        uint64_t ticket = i < copies ? host_copy_ticket(i) : host_products_ticket(i - copies);
        if (is_rather(ticket, best)) {
            best = ticket;
            chosen = i;
        }
    }
    if (host_now.order == HOST_ANY_ORDER)
        chosen = host_random(copies + products);
    if (chosen < copies)
        host_do_copy(chosen);
    else
        host_do_products(chosen - copies);
    return true;
}
