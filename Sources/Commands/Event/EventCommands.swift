// The commands about keys that sign, endpoints, events.

import ArgumentParser

/// In the order of the help.
package enum EventCommands {
    /// What is signed, where it goes, and what waits.
    package static var all: [any ParsableCommand.Type] {
        [SigningKeyCommand.self, EndpointCommand.self, StreamCommand.self, EventCommand.self]
    }
}
