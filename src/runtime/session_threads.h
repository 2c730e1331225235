/* A session's worker threads, for its owner's own loops. */
#ifndef SB_RUNTIME_SESSION_THREADS_H
#define SB_RUNTIME_SESSION_THREADS_H

#include <samebit/session.h>

#include "base/workers.h"

/** The threads that runs use, which are idle between calls with the session: so they are the caller's until the next one. They go with the
 * session. */
sb_workers *sb_session_workers(const sb_session *session);

#endif
