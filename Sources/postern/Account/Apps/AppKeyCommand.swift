// postern app key and postern app redirect: the keys that an app's backend authenticates with,
// and the redirect URIs.

import ArgumentParser
import Foundation
import SignIn

extension AppCommand {
    struct Redirect: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add and remove redirect URIs of an app.",
            discussion: """
                A sign-in redirects only to a URI that is registered for the app, compared octet by octet, but for the \
                port of 127.0.0.1 and [::1]. A redirect URI is https, http for 127.0.0.1, [::1] or localhost, or uses an app's own scheme that is named after a domain.
                """,
            subcommands: [Add.self, Remove.self])

        struct Add: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Add a redirect URI.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The app's client_id.")
            var clientID: String
            @Argument(help: "The URI, exactly as the app sends it.")
            var uri: String
            @Flag(help: "For use after a sign-out (post_logout_redirect_uri), not for a sign-in.")
            var afterSignOut = false
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    let isNew =
                        afterSignOut
                        ? try store.openIDClients.addLogoutRedirect(
                            team: team, clientID: clientID, uri: uri, thisChange())
                        : try store.clients.addRedirect(
                            team: team, clientID: clientID, uri: uri, thisChange())
                    print("The redirect URI is registered\(isNew ? "" : " already").")
                }
            }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Remove a redirect URI.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The app's client_id.")
            var clientID: String
            @Argument(help: "The URI.")
            var uri: String
            @Flag(help: "The URI is for use after a sign-out.")
            var afterSignOut = false
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    if afterSignOut {
                        try store.openIDClients.removeLogoutRedirect(
                            team: team, clientID: clientID, uri: uri, thisChange())
                    } else {
                        try store.clients.removeRedirect(
                            team: team, clientID: clientID, uri: uri, thisChange())
                    }
                    print("Removed the redirect URI.")
                }
            }
        }
    }

    struct Key: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "key",
            abstract:
                "Add, list and remove the keys that a team signs its client secrets and assertions with.",
            discussion: """
                A client_secret is a JWT (ES256) that the team's backend signs with its own private key: kid as below, iss \
                the team's identifier, sub the client_id, aud your provider.issuer, exp at most 15777000 s after iat. \
                Postern has only the public key. An OpenID Connect client can use private_key_jwt instead (RFC 7523; iss and \
                sub are the client_id, exp is within an hour, each jti is used once), with a key of P-256 or RSA. The team \
                generates a pair with

                  openssl ecparam -name prime256v1 -genkey -noout -out client.pem
                  openssl ec -in client.pem -pubout -out client.pub.pem
                """,
            subcommands: [Add.self, List.self, Remove.self])

        struct Add: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Add a public key of P-256 or RSA.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The public key: a PEM file, or - for standard input.")
            var file: String
            @Option(
                help:
                    "Its kid in the header of client secrets. By default the key's thumbprint (RFC 7638)."
            )
            var kid: String?
            @OptionGroup var installation: InstallationOptions

            func run() async throws {
                let pem = try AppCommand.Key.read(file)
                guard !pem.contains("PRIVATE KEY") else {
                    throw CommandError.data(
                        "this is a private key, which must stay with the team; give the public key (see --help)"
                    )
                }
                let key: VerificationKey
                do { key = try VerificationKey(keyID: kid ?? "-", pem: pem) } catch {
                    throw CommandError.data("\(file == "-" ? "standard input" : file): \(error)")
                }
                let id = kid ?? key.thumbprint
                try installation.withStore { store in
                    _ = try store.clients.addKey(team: team, keyID: id, pem: pem, thisChange())
                    print("Added the key of team \(team) with kid \(id)")
                }
            }
        }

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "List a team's keys.")

            @Argument(help: "The team's identifier.")
            var team: String
            @OptionGroup var installation: InstallationOptions
            @OptionGroup var output: OutputOptions

            func run() throws {
                let keys = try installation.withStore { try $0.clients.keys(team: team) }
                try output.print(keys, ["KID", "SINCE"]) {
                    ["kid": $0.keyID, "created_at": timestamp($0.createdAt)] as Members
                } columns: {
                    [$0.keyID, timestamp($0.createdAt)]
                }
            }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Remove a key. Secrets that it signed are then refused.")

            @Argument(help: "The team's identifier.")
            var team: String
            @Argument(help: "The key's kid.")
            var kid: String
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    try store.clients.removeKey(team: team, keyID: kid, thisChange())
                    print("Removed the key \(kid) of team \(team).")
                }
            }
        }

        private static func read(_ file: String) throws -> String {
            let text = try InputFile.text(file, maximum: 65_536)
            guard !text.isEmpty else {
                throw CommandError.data("\(file == "-" ? "standard input" : file): no PEM")
            }
            return text
        }
    }
}
