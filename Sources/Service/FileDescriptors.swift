// The limit on open files, for connections.

import Glibc

package enum FileDescriptors {
    /// Far more than mail and HTTP need together, and few enough to cost no kernel memory.
    private static let wanted: rlim_t = 65_536

    /// Raises the soft limit of open files towards the hard limit. Shells and systemd commonly set
    /// 1,024, which idle HTTP connections alone could use up.
    package static func raise() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
            limit.rlim_cur < wanted
        else { return }
        limit.rlim_cur = min(wanted, limit.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
