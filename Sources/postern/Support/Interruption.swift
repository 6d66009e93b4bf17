// Deletes a command's temporary files when a signal ends it.

import Administration
import Foundation
import Synchronization

/// The end of a pipe that the signal handler writes to; -1 for none. A signal handler may do little
/// else.
private let handlersEnd = Atomic<Int32>(-1)

/// Watches for the signals that end a command. Deletes the command's files, and then ends the
/// process as the signal would have.
final class InterruptionWatch {
    private let signals: [Int32]

    fileprivate init(_ leftovers: Leftovers) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            signals = []
            return
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let source = ends[0]
        handlersEnd.store(ends[1], ordering: .sequentiallyConsistent)
        Thread.detachNewThread {
            defer { close(source) }
            var number: UInt8 = 0
            while true {
                let count = read(source, &number, 1)
                if count < 0, errno == EINTR { continue }
                guard count == 1 else { return }
                leftovers.removeOwn()
                signal(Int32(number), SIG_DFL)
                kill(getpid(), Int32(number))
            }
        }
        signals = [SIGINT, SIGTERM, SIGHUP].filter(Self.takeOver)
    }

    /// Handles a signal, unless it is ignored, as SIGHUP is under nohup, or already handled.
    private static func takeOver(_ number: Int32) -> Bool {
        let before = signal(number) { number in
            var octet = UInt8(truncatingIfNeeded: number)
            _ = write(handlersEnd.load(ordering: .sequentiallyConsistent), &octet, 1)
        }
        guard let before else { return true }
        signal(number, before)
        return false
    }

    /// Restores the default: the signals end the process directly.
    func end() {
        for number in signals { signal(number, SIG_DFL) }
        let end = handlersEnd.exchange(-1, ordering: .sequentiallyConsistent)
        if end >= 0 { close(end) }
    }
}

extension Leftovers {
    /// From now on SIGINT, SIGTERM and SIGHUP delete the files that this process created. Only one
    /// watch at a time.
    func removingIfInterrupted() -> InterruptionWatch { InterruptionWatch(self) }

    /// Does this while `body` runs.
    func removedIfInterrupted<T>(_ body: () throws -> T) rethrows -> T {
        let watch = removingIfInterrupted()
        defer { watch.end() }
        return try body()
    }
}
