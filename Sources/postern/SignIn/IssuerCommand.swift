// postern issuer: the issuers whose identity tokens and events are accepted.

import Accounts
import ArgumentParser
import AsyncHTTPClient
import Foundation
import Logging
import SignIn

struct IssuerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "issuer",
        abstract:
            "Add, list, show, remove and test the issuers whose identity tokens are accepted.",
        discussion: """
            A token is accepted if its iss is that of an issuer listed here, its signature is valid under the issuer's key \
            that it names (kid), and its algorithm is configured for the issuer. For Apple:

              postern issuer add apple --iss https://appleid.apple.com \\
                --jwks-uri https://appleid.apple.com/auth/keys --algorithm RS256 --nonce-form sha256_hex
              postern issuer test apple

            Issuers may be configured in postern.yaml instead (issuers:); an issuer in both places is an error.
            """,
        subcommands: [
            Add.self, List.self, Show.self, Remove.self, Test.self, IssuerPollCommand.self,
        ])

    private struct Found {
        let issuer: Issuer
        let keysFetchedAt: String?
        /// `command` or `postern.yaml`.
        let origin: String

        init(_ issuer: Issuer, in store: Store) throws {
            let keys = try store.issuers.keys(of: issuer.name, location: issuer.location)
            origin =
                try store.issuers.configured().contains(issuer.name) ? "postern.yaml" : "command"
            self.issuer = issuer
            keysFetchedAt = keys.map { timestamp($0.fetchedAt) }
        }

        var members: Members {
            [
                "name": issuer.name, "iss": issuer.iss, "source": issuer.source.rawValue,
                "location": issuer.location,
                "allows_http": issuer.allowsHTTP, "algorithms": issuer.algorithms,
                "nonce_form": issuer.nonceForm,
                "leeway": issuer.leeway, "created_at": timestamp(issuer.createdAt),
                "keys_fetched_at": keysFetchedAt,
                "origin": origin,
            ]
        }

        /// The location of the keys, short enough for a table.
        var place: String { issuer.source == .inline ? "(kept here)" : issuer.location }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register an issuer.",
            discussion: """
                The issuer's keys are a JWK Set: at an https: address, from which they are fetched when needed, kept, and \
                used for up to a week while the issuer is unreachable; in a file on this host, which may be edited; or \
                copied into the database. RSA keys must have at least 2048 bits; the only elliptic curve that is accepted is \
                P-256.

                --nonce-form says how the nonce in a token relates to the nonce that the app sent: raw if they are equal, or \
                sha256_hex if the token has its SHA-256 in lower-case hexadecimal.
                """)

        @Argument(help: "A name for the issuer, as in apple.") var name: String
        @Option(help: ArgumentHelp("The claim iss of its tokens, exactly.", valueName: "text"))
        var iss: String
        @Option(help: ArgumentHelp("The address of its keys.", valueName: "address")) var jwksUri:
            String?
        @Option(
            help: ArgumentHelp("A file that holds its keys.", valueName: "file"),
            transform: filePath) var jwksFile: String?
        @Option(
            help: ArgumentHelp(
                "Copy its keys from this file; - for standard input.", valueName: "file"),
            transform: filePath)
        var jwksInline: String?
        @Option(
            help: ArgumentHelp(
                "RS256 or ES256; may be repeated. By default both.", valueName: "name"))
        var algorithm: [TokenAlgorithm] = []
        @Option(help: ArgumentHelp("raw or sha256_hex.", valueName: "form")) var nonceForm:
            TokenNonceForm = .raw
        @Option(
            help: ArgumentHelp(
                "Seconds by which clocks may differ, 0 to 300.", valueName: "seconds"))
        var leeway = IssuerConfiguration.defaultLeeway
        @Flag(
            help:
                "Also accept keys over plain http from other hosts. Anyone on the network path can replace them."
        )
        var allowHttp = false
        @OptionGroup var installation: InstallationOptions

        func validate() throws {
            guard [jwksUri, jwksFile, jwksInline].compactMap({ $0 }).count == 1 else {
                throw ValidationError("Give one of --jwks-uri, --jwks-file and --jwks-inline.")
            }
            guard (0...IssuerConfiguration.maximumLeeway).contains(leeway) else {
                throw ValidationError(
                    "--leeway must be 0 to \(IssuerConfiguration.maximumLeeway) seconds.")
            }
        }

        mutating func run() async throws {
            guard (1...2048).contains(iss.utf8.count),
                iss.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F })
            else {
                throw CommandError.data(
                    "--iss must be 1 to 2048 octets without spaces and control characters")
            }
            let (source, location) = try await place()
            let algorithms = Set(algorithm.isEmpty ? TokenAlgorithm.allCases : algorithm).map(
                \.rawValue)
            let issuer = Issuer(
                name: name, iss: iss, source: source, location: location, allowsHTTP: allowHttp,
                algorithms: algorithms,
                nonceForm: nonceForm.rawValue, leeway: leeway)
            let added = try installation.withStore { try $0.issuers.add(issuer, thisChange()) }
            print("Added issuer \(added.name). Try: postern issuer test \(added.name)")
        }

        private func place() async throws -> (Issuer.Source, String) {
            if let jwksUri {
                if let objection = KeySetAddress.objection(jwksUri, allowingHTTP: allowHttp) {
                    throw CommandError.data("--jwks-uri: \(objection)")
                }
                return (.uri, jwksUri)
            }
            let path = jwksFile ?? jwksInline ?? ""
            let document = try TokenFiles.read(path, limit: JWKSet.maximumLength)
            do {
                let keys = try JWKSet.parse(document)
                guard !keys.keys.isEmpty else {
                    throw KeySetError(
                        "no usable key\(keys.unusable.first.map { ": \($0.reason)" } ?? "")")
                }
            } catch let error as KeySetError {
                throw CommandError.data("\(path): \(error)")
            }
            if jwksInline != nil { return (.inline, String(decoding: document, as: UTF8.self)) }
            guard path != "-" else {
                throw CommandError.usage(
                    "--jwks-file must name a file: use --jwks-inline - for standard input")
            }
            return (.file, URL(fileURLWithPath: path).standardizedFileURL.path)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the issuers.")

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { store in
                try store.issuers.issuers().map { try Found($0, in: store) }
            }
            try output.print(
                rows, ["NAME", "ISS", "KEYS", "ALGORITHMS", "NONCE", "FROM"], json: \.members
            ) {
                let issuer = $0.issuer
                return [
                    issuer.name, issuer.iss, $0.place, issuer.algorithms.joined(separator: ","),
                    issuer.nonceForm, $0.origin,
                ]
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show an issuer.")

        @Argument(help: "The issuer's name.") var name: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let row = try installation.withStore { store in
                try Found(store.issuers.issuer(name), in: store)
            }
            let issuer = row.issuer
            try output.print(row.members) {
                [
                    ("name", issuer.name), ("iss", issuer.iss), ("keys", row.place),
                    ("algorithms", issuer.algorithms.joined(separator: ", ")),
                    ("nonce form", issuer.nonceForm),
                    ("leeway", "\(issuer.leeway) s"),
                    ("plain http", issuer.allowsHTTP ? "allowed" : "no"),
                    ("added", timestamp(issuer.createdAt)), ("by", row.origin),
                    ("keys fetched", row.keysFetchedAt ?? "-"),
                ]
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an issuer.",
            discussion: "Its tokens and events are refused from then on.")

        @Argument(help: "The issuer's name.") var name: String
        @Flag(help: "Confirm. Without it nothing is changed.") var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let issuer = try store.issuers.issuer(name)
                guard yes else {
                    throw CommandError.usage(
                        "without issuer \(issuer.name) the tokens of \(issuer.iss) are refused: repeat with --yes to remove it; "
                            + "nothing was changed")
                }
                try store.issuers.remove(issuer.name, thisChange())
                print("Removed issuer \(issuer.name).")
            }
        }
    }

    struct Test: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetch an issuer's keys now and report which can be used.",
            discussion:
                "Exit status 0 if at least one key can be used, 65 if none can, 75 if they cannot be fetched."
        )

        struct KeyRow: Encodable {
            let kid: String?
            let algorithm: String?
            let bits: Int?
            let usable: Bool
            let reason: String?

            var columns: [String] {
                let length = bits.map(String.init) ?? "-"
                return [
                    kid?.withoutControls(limit: 256) ?? "-", algorithm ?? "-", length,
                    usable ? "yes" : "no: \(reason ?? "")",
                ]
            }
        }

        @Argument(help: "The issuer's name.") var name: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        mutating func run() async throws {
            let issuer = IssuerConfiguration(
                try installation.withStore { try $0.issuers.issuer(name) })
            let keys: JWKSet
            do {
                let document = try await TokenFiles.withFetcher {
                    try await $0.fetch(issuer.source)
                }.document
                keys = try JWKSet.parse(document)
            } catch let error as KeySetFetchError {
                throw CommandError(status: EX_TEMPFAIL, message: "issuer \(issuer.name): \(error)")
            } catch let error as KeySetError {
                throw CommandError.data("issuer \(issuer.name): \(error)")
            }
            var rows = keys.keys.map { key in
                let isTaken = issuer.algorithms.contains(key.algorithm)
                return KeyRow(
                    kid: key.keyID, algorithm: key.algorithm.rawValue, bits: key.bits,
                    usable: isTaken,
                    reason: isTaken
                        ? nil : "\(key.algorithm.rawValue) is not configured for this issuer")
            }
            rows += keys.unusable.map {
                KeyRow(kid: $0.keyID, algorithm: nil, bits: nil, usable: false, reason: $0.reason)
            }
            if output.json {
                try printJSON(rows)
            } else {
                Table(header: ["KID", "ALGORITHM", "BITS", "USABLE"], rows: rows.map(\.columns))
                    .print()
            }
            guard rows.contains(where: \.usable) else {
                throw CommandError.data(
                    "issuer \(issuer.name): no token can be verified with these keys")
            }
        }
    }
}

/// An algorithm as an argument.
enum TokenAlgorithm: String, ExpressibleByArgument, CaseIterable {
    case rs256 = "RS256"
    case es256 = "ES256"

    var value: SignatureAlgorithm { self == .rs256 ? .rs256 : .es256 }
}

/// A nonce's form as an argument.
enum TokenNonceForm: String, ExpressibleByArgument, CaseIterable {
    case raw
    case sha256Hex = "sha256_hex"

    var value: NonceForm { self == .raw ? .raw : .sha256Hex }
}

/// The input of the commands for tokens.
enum TokenFiles {
    /// A file, or standard input for `-`; at most `limit` octets.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        Array(try InputFile.octets(path, maximum: limit))
    }

    /// Runs `body` with a fetcher.
    static func withFetcher<T: Sendable>(
        _ body: (HTTPKeySetFetcher) async throws -> T
    ) async throws -> T {
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        do {
            let result = try await body(HTTPKeySetFetcher(client: client))
            try await client.shutdown()
            return result
        } catch {
            try? await client.shutdown()
            throw error
        }
    }
}
