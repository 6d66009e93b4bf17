// Handles signals besides libmilter, whose own thread waits for SIGTERM, SIGINT and SIGHUP and then stops ungracefully.

import Concurrency
import Glibc

/// The pipe that the signal handler writes to; -1 before `SignalWatch.start`. Written once, before any handler is installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Passes signals to ordinary code. A plain handler for a signal that no thread blocks keeps libmilter's sigwait from receiving
/// it: the kernel prefers the main thread. `start` therefore unblocks the signals in its thread, which must be the main one (a
/// process started from a thread with blocked signals inherits the block).
package enum SignalWatch {
    /// From now on calls `handle`, on a separate thread, for each of these signals. Once per process; a further call changes
    /// nothing and returns false.
    @discardableResult
    package static func start(_ signals: [Int32], _ handle: @escaping @Sendable (Int32) -> Void) -> Bool {
        var ends: [Int32] = [-1, -1]
        guard signalPipe < 0, pipe(&ends) == 0 else { return false }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        signalPipe = ends[1]
        let input = ends[0]
        for number in signals {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in
                // Only write(2), which is async-signal-safe; errno belongs to the interrupted code.
                let saved = errno
                var octet = UInt8(truncatingIfNeeded: number)
                _ = write(signalPipe, &octet, 1)
                errno = saved
            }
            action.sa_flags = SA_RESTART
            sigaction(number, &action, nil)
        }
        var mask = sigset_t()
        sigemptyset(&mask)
        for number in signals { sigaddset(&mask, number) }
        pthread_sigmask(SIG_UNBLOCK, &mask, nil)
        return SystemThread.detach { watch(input, handle) } == 0
    }
}

private func watch(_ input: Int32, _ handle: (Int32) -> Void) {
    var octet: UInt8 = 0
    while true {
        let count = read(input, &octet, 1)
        if count == 1 {
            handle(Int32(octet))
        } else if count == 0 || errno != EINTR {
            return
        }
    }
}
