// libmilter and the signals of the process.

import Glibc

/// In place of sigwait(3), which in this process libmilter alone calls: a thread of its own waits for SIGHUP, SIGTERM and SIGINT,
/// and each of them stops libmilter at once and for ever. The kernel gives a signal to that thread whenever it likes, for example
/// where the main thread has not taken an earlier one yet; so two SIGHUPs in a row ended the service. This one never returns:
/// signals are the program's, which calls `MilterServer.stop`.
@_cdecl("sigwait")
package func libmilterSigwait(_ signals: UnsafePointer<sigset_t>?, _ signal: UnsafeMutablePointer<Int32>?) -> Int32 {
    while true { pause() }
}
