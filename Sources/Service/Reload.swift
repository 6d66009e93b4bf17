// What SIGHUP puts in force, and what needs a restart.

import Logging
import PosternConfiguration

/// The configuration as read again, compared with the one that the service was started with.
package struct Reload: Sendable {
    /// Keys that differ and need a restart, in the order of the file.
    package let waiting: [ConfigurationKey]

    package init(from old: ResolvedConfiguration, to new: ResolvedConfiguration) {
        waiting = zip(old.entries, new.entries).filter { $0.value != $1.value && !$0.key.facts.isLive }.map { $0.0.key }
    }

    /// Logs what was done.
    func log(to logger: Logger) {
        logger.notice("configuration reloaded")
        guard !waiting.isEmpty else { return }
        logger.warning(
            "changed keys that wait for a restart", metadata: ["keys": "\(waiting.map(\.rawValue).joined(separator: " "))"])
    }
}
