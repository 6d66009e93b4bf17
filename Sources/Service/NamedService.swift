// Services with a name for the service group's log.

import ServiceLifecycle

/// A service described by its type's name. The service group logs services at level `debug`.
/// Without a description it would print a value with everything in it.
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
