/* What sessions do with states. */
#ifndef SB_RUNTIME_SESSION_STATE_H
#define SB_RUNTIME_SESSION_STATE_H

#include "runtime/state_binding.h"

/** Finds the entry graph that the options name, and binds their state to it: *binding stays NULL without one.
 * Errors: INVALID_ARGUMENT for no such graph or another model's state; UNSUPPORTED for a graph that needs a
 * state and gets none; OUT_OF_MEMORY. */
sb_status sb_session_bind(sb_model *model, const sb_session_options *options, const sb_model_entry **entry,
                          sb_state_binding **binding, sb_error *error);

/** The value that enters a run at sb_program::enter[index]: the caller's, or the state's. INVALID_ARGUMENT when the
 * caller gives what the state has. `binding` may be NULL. */
sb_status sb_session_entering(const sb_state_binding *binding, const sb_graph *graph, const sb_value *inputs,
                              size_t index, sb_value *value, sb_error *error);

/** Whether output `index` of the graph belongs to the state and comes out as nothing. `binding` may be NULL. */
bool sb_session_keeps(const sb_state_binding *binding, size_t index);

#endif
