// The commands for signing keys, endpoints, streams and events.

import ArgumentParser

/// In the order of the help.
enum EventCommands {
    /// Signing keys, endpoints, streams and events.
    static var all: [any ParsableCommand.Type] {
        [SigningKeyCommand.self, EndpointCommand.self, StreamCommand.self, EventCommand.self]
    }
}
