// postern app client and postern app secret: how an app authenticates as an OpenID Connect client.

import Accounts
import ArgumentParser
import Database
import SignIn
import Support

struct IdentityTokenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The algorithm of its identity tokens: RS256 (of a new app) or ES256.",
            valueName: "algorithm"))
    var idTokenAlgorithm: String?

    /// Nil if the option was not given.
    func algorithm() throws -> SignatureAlgorithm? {
        try idTokenAlgorithm.map { text in
            guard let algorithm = SignatureAlgorithm(rawValue: text) else {
                throw CommandError.usage(
                    "\(text.withoutControls(limit: 64)) is not an algorithm of identity tokens: use RS256 or ES256"
                )
            }
            return algorithm
        }
    }
}

extension AppCommand {
    struct Client: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "client",
            abstract: "Show and set how an app is registered as an OpenID Connect client.",
            discussion: """
                A confidential app authenticates with a client secret (postern app secret), or with a key of its team (postern \
                app key). A public app, such as one on a phone, has neither: it uses PKCE, and each of its refresh tokens is \
                valid once. Identity tokens are signed with RS256, which every library checks, or with ES256. An app with a \
                --backchannel-logout-uri is notified when a session ends in which a user signed in to it.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @Flag(inversion: .prefixedNo, help: "Whether the app is public: without a secret.")
        var `public`: Bool?
        @OptionGroup var identityTokens: IdentityTokenOptions
        @Option(
            help: ArgumentHelp(
                """
                The URI that is notified when a session ends (OpenID Connect Back-Channel Logout): an https URI, or none. \
                Addresses in your own network need events.private_receivers.
                """,
                valueName: "uri"))
        var backchannelLogoutURI: String?
        @OptionGroup var output: OutputOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let algorithm = try identityTokens.algorithm()
            let opened = try installation.open()
            defer { try? opened.close() }
            let (store, allowsPrivate) = (opened.store, opened.configuration.allowsPrivateReceivers)
            do {
                let clients = store.openIDClients
                let old = try clients.settings(team: team, clientID: clientID)
                let logoutURI =
                    backchannelLogoutURI.map { $0.hasSameOctets(as: "none") ? nil : $0 }
                    ?? old.logoutURI
                let settings = ClientSettings(
                    isPublic: self.public ?? old.isPublic, algorithm: algorithm ?? old.algorithm,
                    logoutURI: logoutURI)
                if let uri = settings.logoutURI, uri != old.logoutURI, !allowsPrivate,
                    try !EndpointURL(uri).isSecure
                {
                    throw CommandError.usage(
                        "Postern would not use http: set events.private_receivers to yes first")
                }
                if settings != old {
                    try store.setClient(settings, team: team, clientID: clientID, thisChange())
                }
                let logout = try clients.logoutRedirects(clientID: clientID)
                let waiting = try store.logouts.waiting(clientID: clientID)
                let members: Members = [
                    "team": team, "client_id": clientID, "public": settings.isPublic,
                    "id_token_algorithm": settings.algorithm.rawValue,
                    "post_logout_redirect_uris": logout,
                    "backchannel_logout_uri": settings.logoutURI, "logouts_not_told_yet": waiting,
                ]
                try output.print(members) {
                    [
                        ("app", clientID), ("public", settings.isPublic ? "yes" : "no"),
                        ("identity tokens", settings.algorithm.rawValue),
                        ("told of sessions that end", settings.logoutURI ?? "-"),
                        ("not told yet", String(waiting)),
                        ("after signing out", logout.isEmpty ? "-" : logout.joined(separator: " ")),
                    ]
                }
            }
        }
    }

    struct Secret: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "secret", abstract: "Issue, list and revoke an app's client secrets.",
            discussion: """
                For client_secret_basic and client_secret_post. An app has at most two secrets, so that one can replace the \
                other: issue the new one, configure the app with it, revoke the old one. The store keeps only a hash.
                """,
            subcommands: [Issue.self, List.self, Revoke.self])

        struct Issue: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Issue a client secret.",
                discussion:
                    "The secret goes to standard output, and everything else to standard error. It is not shown again."
            )

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The app's client_id.")
            var clientID: String
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    let (_, issued) = try SecretOutput.issue { output in
                        try store.openIDClients.issueSecret(
                            team: team, clientID: clientID, thisChange()
                        ) {
                            secret throws(StoreFailure) in
                            try output.write { print(secret) }
                        }
                    }
                    Failure.note("Secret \(issued.name) of app \(clientID). It is not shown again.")
                }
            }
        }

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "List an app's client secrets.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The app's client_id.")
            var clientID: String
            @OptionGroup var installation: InstallationOptions
            @OptionGroup var output: OutputOptions

            func run() throws {
                let secrets = try installation.withStore {
                    try $0.openIDClients.secrets(team: team, clientID: clientID)
                }
                try output.print(secrets, ["SECRET", "SINCE"]) {
                    ["secret": $0.name, "created_at": timestamp($0.createdAt)]
                } columns: {
                    [$0.name, timestamp($0.createdAt)]
                }
            }
        }

        struct Revoke: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Revoke a client secret at once.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The app's client_id.")
            var clientID: String
            @Argument(
                help:
                    "The secret's name, as in postern app secret list; it is the second part of the secret."
            )
            var secret: String
            @Flag(help: "Confirm that the app has no other secret.") var yes = false
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    let others = try store.openIDClients.secrets(team: team, clientID: clientID)
                        .filter {
                            !$0.name.hasSameOctets(as: secret)
                        }
                    guard yes || !others.isEmpty else {
                        throw CommandError.usage(
                            "app \(clientID) has no other secret, and no user can sign in without one: issue another first, or repeat with "
                                + "--yes; nothing was changed")
                    }
                    try store.openIDClients.revokeSecret(
                        team: team, clientID: clientID, name: secret, thisChange())
                    print("Revoked the secret \(secret) of app \(clientID).")
                }
            }
        }
    }
}
