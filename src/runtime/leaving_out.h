/* Outputs that a caller has no use for in some of a session's runs. */
#ifndef SB_RUNTIME_LEAVING_OUT_H
#define SB_RUNTIME_LEAVING_OUT_H

#include <samebit/session.h>

/** From the next run on, outputs whose bits are set (0 for the first) come out as nothing, and are not copied to the host; 0: all come out,
 * as in a new session. No plan changes, and no recording. */
void sb_session_leave_out(sb_session *session, uint64_t outputs);
/** Whether the session's steps are given to a device, so that runs can be ahead of their caller. */
bool sb_session_has_device(const sb_session *session);

#endif
