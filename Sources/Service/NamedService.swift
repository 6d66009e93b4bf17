// Services as a group may name them.

import ServiceLifecycle

/// A service under its type's name. The group writes services into the log at the level `debug`, and a value that does not
/// describe itself is described by all that it holds.
package struct NamedService: Service, CustomStringConvertible {
    package let description: String
    private let work: @Sendable () async throws -> Void

    /// Runs as `service` does.
    package init(_ service: some Service) {
        description = "\(type(of: service))"
        work = { try await service.run() }
    }

    package func run() async throws { try await work() }
}
