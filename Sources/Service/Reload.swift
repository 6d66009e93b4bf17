// What SIGHUP puts in force, and what needs a restart.

import Logging
import PosternConfiguration

/// The configuration as read again, compared with the one that the service was started with.
package struct Reload: Sendable {
    /// Sections and keys that take effect with the next message, decision or connection. All others are read only at the start.
    package static let live = [
        "relay_domains", "authserv_id", "trusted_authserv_ids", "operator_address", "local_recipients", "return_path_days",
        "fan_out", "fan_out_smtpd", "limits.", "suspension.", "dns.",
        "providers", "issuers", "log.level",
    ]

    package static func isLive(_ key: String) -> Bool {
        // The budget lasts for the life of the process, because messages in progress hold parts of it.
        guard key != "limits.reply_memory" else { return false }
        return live.contains { $0.hasSuffix(".") ? key.hasPrefix($0) : key == $0 }
    }

    /// Keys that differ and need a restart, in the order of the file.
    package let waiting: [String]

    package init(from old: ResolvedConfiguration, to new: ResolvedConfiguration) {
        waiting = zip(old.entries, new.entries).filter { $0.value != $1.value && !Self.isLive($0.key.path) }.map { $0.0.key.path }
    }

    /// Logs what was done.
    func log(to logger: Logger) {
        logger.notice("configuration reloaded")
        guard !waiting.isEmpty else { return }
        logger.warning("changed keys that wait for a restart", metadata: ["keys": "\(waiting.joined(separator: " "))"])
    }
}
