// A program started with posix_spawn.

import Glibc

/// A child of this process. Foundation's `Process` has three faults. It lists all open files of
/// this process to close them in the child, and with some 1,360 of them reads beyond the end of its
/// list. Its pipes are inherited by children that are started at the same time. And each thread
/// that starts a child gets a run loop with three open files, which stay as long as the thread.
package struct SystemProcess: Sendable {
    package let identifier: Int32

    /// The reason why a program was not started.
    package struct Failure: Error, CustomStringConvertible { package let description: String }

    /// Starts a program, with no signal ignored or blocked. The caller must `wait` for it.
    /// - Parameters:
    ///   - environment: the child's whole environment.
    ///   - descriptors: standard input, output and error of the child, which gets no other open
    ///     file.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String],
        directory: String? = nil,
        descriptors: (Int32, Int32, Int32)
    ) throws(Failure) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        func check(_ status: Int32) throws(Failure) {
            guard status == 0 else {
                throw Failure(
                    description:
                        "\(executable) cannot be started: \(String(cString: strerror(status)))")
            }
        }
        try check(posix_spawn_file_actions_adddup2(&actions, descriptors.0, 0))
        try check(posix_spawn_file_actions_adddup2(&actions, descriptors.1, 1))
        try check(posix_spawn_file_actions_adddup2(&actions, descriptors.2, 2))
        try check(posix_spawn_file_actions_addclosefrom_np(&actions, 3))
        if let directory { try check(posix_spawn_file_actions_addchdir_np(&actions, directory)) }
        // Dispatch threads block signals, and this process ignores some: a child would inherit
        // both.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var child: pid_t = 0
        try check(
            Self.withCStrings([executable] + arguments) { arguments in
                Self.withCStrings(environment.map { "\($0.key)=\($0.value)" }) { variables in
                    posix_spawn(&child, executable, &actions, &attributes, arguments, variables)
                }
            })
        identifier = child
    }

    /// Waits until it has ended. Call it once, because afterwards another process may have its id.
    /// - Returns: the exit status as in a shell: 128 + signal for a killed process. 127 if the
    ///   system does not report the status, for example if this process was started with SIGCHLD
    ///   ignored.
    package func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0 { guard errno == EINTR else { return 127 } }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    /// A pipe whose ends no other child inherits.
    package static func pipe() throws(Failure) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else {
            throw Failure(description: "no pipe: \(String(cString: strerror(errno)))")
        }
        return (ends[0], ends[1])
    }

    private static func withCStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        let copies = strings.map { strdup($0) } + [nil]
        defer { copies.forEach { free($0) } }
        return copies.withUnsafeBufferPointer { body($0.baseAddress.unsafelyUnwrapped) }
    }
}

// From glibc (2.34), which declares them only with _GNU_SOURCE: Swift's Glibc
// module leaves them out.

@_silgen_name("posix_spawn_file_actions_addclosefrom_np")
private func posix_spawn_file_actions_addclosefrom_np(
    _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ from: Int32
) -> Int32

@_silgen_name("posix_spawn_file_actions_addchdir_np")
private func posix_spawn_file_actions_addchdir_np(
    _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ path: UnsafePointer<CChar>
) -> Int32

@_silgen_name("pipe2")
private func pipe2(_ ends: UnsafeMutablePointer<Int32>, _ flags: Int32) -> Int32
