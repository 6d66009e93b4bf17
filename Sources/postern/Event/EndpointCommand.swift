// postern endpoint: the URLs that get notifications of changes.

import Accounts
import ArgumentParser
import Events
import Foundation
import Logging
import PosternConfiguration
import Relay
import SignIn

struct EndpointCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "endpoint",
        abstract: "Set, show, test and remove the endpoints that events go to.",
        discussion: """
            Each group of apps has its own endpoint. Events are signed (ES256, keys at /auth/keys), delivered at least once \
            and in order for each account, retried for three days, and then parked. docs/EVENTS.md describes what a receiver \
            must do.
            """,
        subcommands: [Set.self, Show.self, Test.self, Remove.self])

    /// `works`, `fails`, `untried` (it has accepted no event and no test yet; if it refused one,
    /// `last_error` says why) or `removed` (no group of apps uses it).
    private static func state(_ endpoint: EventEndpoint) -> String {
        guard endpoint.groupNumber != nil else { return "removed" }
        return endpoint.failures > 0 ? "fails" : endpoint.lastSuccessAt == nil ? "untried" : "works"
    }

    private static func members(_ endpoint: EventEndpoint) -> Members {
        [
            "audience": endpoint.audience, "url": endpoint.url.description,
            "allows_private": endpoint.allowsPrivate,
            "pending": endpoint.pending, "parked": endpoint.parked, "failures": endpoint.failures,
            "last_error": endpoint.lastError,
            "last_success_at": endpoint.lastSuccessAt.map(timestamp),
            "created_at": timestamp(endpoint.createdAt), "state": state(endpoint),
            "dialect": endpoint.dialect.rawValue,
        ]
    }

    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the endpoint of an app's group; pending events go there at once.",
            discussion: """
                The host name is resolved for every delivery. All its addresses must be globally reachable, and the \
                connection uses one of the checked addresses. Redirects are not followed.
                """)

        @Argument(help: "The team's identifier.") var team: String
        @Argument(help: "An https URL.") var url: String
        @Option(
            help: ArgumentHelp(
                "Any app of the group. By default the team's first group.", valueName: "client-id"))
        var app: String?
        @Flag(help: "Also accept http; only for tests.") var allowHTTP = false
        @Flag(help: "Also accept addresses of this machine and of private networks.")
        var allowPrivate = false
        @Option(help: "The form of events: apple, or apple-2025 with account-deleted and exp.")
        var dialect = Dialect.apple
        @OptionGroup var installation: InstallationOptions

        /// The forms that can be set here. The third form is that of streams,
        /// which their receivers create.
        enum Dialect: String, ExpressibleByArgument, CaseIterable {
            case apple
            case apple2025 = "apple-2025"

            var event: EventDialect { self == .apple ? .apple : .apple2025 }
        }

        func run() throws {
            try installation.withInstallation { installation in
                let url = try EndpointURL(url)
                let endpoint = try installation.store.endpoints.set(
                    team: team, app: app, url: url, allowsHTTP: allowHTTP,
                    allowsPrivate: allowPrivate,
                    dialect: dialect.event, thisChange())
                print("Events for \(endpoint.audience) go to \(endpoint.url).")
                if installation.configuration.provider.issuer == nil {
                    Failure.warn("no event is sent until http.public_url or provider.issuer is set")
                }
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the endpoints of a team or of all teams, and their state.")

        @Argument(help: "The team's identifier. By default all teams.") var team: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { try $0.endpoints.endpoints(team: team) }
            try output.print(
                rows,
                ["FOR", "URL", "FORM", "STATE", "PENDING", "PARKED", "LAST SUCCESS", "LAST ERROR"],
                json: members
            ) {
                [
                    $0.audience, $0.url.description, $0.dialect.rawValue, state($0),
                    "\($0.pending)", "\($0.parked)",
                    $0.lastSuccessAt.map(timestamp) ?? "-",
                    $0.lastError ?? "-",
                ]
            }
        }
    }

    struct Test: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send an event of type test to an endpoint now, and report the result.",
            discussion: """
                The event is not stored, and pending events stay pending. endpoint show has the result. Exit status 0 if the \
                endpoint accepted it, 75 if it did not.
                """)

        @Argument(help: "The team's identifier.") var team: String
        @Option(
            help: ArgumentHelp(
                "Any app of the group. By default the team's first group.", valueName: "client-id"))
        var app: String?
        @OptionGroup var installation: InstallationOptions

        mutating func run() async throws {
            let opened = try installation.open()
            defer { try? opened.close() }
            let endpoint = try opened.store.endpoints.endpoint(team: team, app: app)
            var logger = Logger(label: "postern")
            logger.logLevel = .critical
            let signer = IdentitySigner(
                opened.store.identityKeys, now: PosternClock.now, logger: logger)
            let parts = try EventServices.parts(
                opened, signer: signer,
                resolver: {
                    try Resolvers.client(opened.configuration, path: opened.resolved.path)
                }, now: PosternClock.now,
                logger: logger)
            guard let parts else {
                throw CommandError(
                    status: EX_CONFIG,
                    message: "no event is sent: set http.public_url or provider.issuer")
            }
            let outcome = try await parts.delivery.test(endpoint)
            await parts.poster.stop()
            await parts.threads.stop()
            var failure: String?
            if case .failed(let reason, _, _) = outcome { failure = reason }
            try opened.store.endpoints.noteTest(endpoint, failure: failure, now: PosternClock.now())
            switch outcome {
            case .delivered:
                print("\(endpoint.url) accepted a test event for \(endpoint.audience).")
            case .failed(let reason, _, _):
                throw CommandError(status: EX_TEMPFAIL, message: "\(endpoint.url): \(reason)")
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Remove an endpoint with its pending events: its team is no longer notified of changes."
        )

        @Argument(help: "The team's identifier.") var team: String
        @Option(
            help: ArgumentHelp(
                "Any app of the group. By default the team's first group.", valueName: "client-id"))
        var app: String?
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let endpoint = try store.endpoints.endpoint(team: team, app: app)
                try confirmation.check(
                    "the endpoint for \(endpoint.audience)",
                    takes: [(endpoint.pending, "pending event"), (endpoint.parked, "parked event")])
                try store.endpoints.remove(team: team, app: app, thisChange())
                print("Removed.")
                takeAway(from: store)
            }
        }
    }
}
