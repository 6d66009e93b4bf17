// libmilter and the signals of the process.

import Glibc

/// Replaces sigwait(3), which only libmilter calls in this process. libmilter's own thread would
/// wait for SIGHUP, SIGTERM and SIGINT, and each of them would stop libmilter at once and
/// permanently. The kernel may give any signal to that thread, for example while the main thread
/// has not yet taken an earlier one. Two SIGHUPs in a row would then end the service. This function
/// never returns. The program handles its own signals, and calls `MilterServer.stop`.
///
/// libmilter finds it only if the executable exports it: Package.swift tells the linker.
@_cdecl("sigwait")
package func libmilterSigwait(
    _ signals: UnsafePointer<sigset_t>?, _ signal: UnsafeMutablePointer<Int32>?
) -> Int32 {
    while true { pause() }
}

/// Whether libmilter, like every other library of the process, finds `libmilterSigwait`.
func keepsSignalsFromLibmilter() -> Bool {
    let own: @convention(c) (UnsafePointer<sigset_t>?, UnsafeMutablePointer<Int32>?) -> Int32 =
        libmilterSigwait
    // The null handle stands for the first definition in the order of libraries.
    return dlsym(nil, "sigwait") == unsafeBitCast(own, to: UnsafeMutableRawPointer.self)
}
