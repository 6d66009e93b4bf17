// The settings that SIGHUP applies, and those that need a restart.

import Logging
import PosternConfiguration

/// The configuration as read again, compared with the one at the start of the service.
package struct Reload: Sendable {
    /// Keys that differ and need a restart, in the order of the file.
    package let waiting: [ConfigurationKey]

    package init(from old: ResolvedConfiguration, to new: ResolvedConfiguration) {
        waiting = zip(old.entries, new.entries).filter {
            $0.value != $1.value && !$0.key.facts.isLive
        }.map { $0.0.key }
    }

    /// Logs the reload, and the keys that need a restart.
    func log(to logger: Logger) {
        logger.notice("configuration reloaded")
        guard !waiting.isEmpty else { return }
        logger.warning(
            "changed keys that wait for a restart",
            metadata: ["keys": "\(waiting.map(\.rawValue).joined(separator: " "))"])
    }
}
